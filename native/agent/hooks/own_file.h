// Opens files of the agent with descriptors that do not disturb the program.
#pragma once

namespace warplens::agent {

//! Moves a descriptor out of the way, and closes it on exec: programs count on the numbers of the files that they open. The new number,
//! or the old one where that cannot be.
int move_up(int fd);

}  // namespace warplens::agent
