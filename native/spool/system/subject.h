// The recorded process: our own, or one that an observer watches from outside.
#pragma once

#include <sys/types.h>

#include <string>

namespace warplens {

//! Its id.
pid_t subject();

//! Once, before anything of it is asked: it is the process `pid`.
void watch_subject(pid_t pid);

//! Whether it is another process.
bool is_outside();

//! A file of its folder in /proc.
std::string subject_path(const char *name);

//! [MT] It has become another program, which the observer does not watch. Ours never does.
void note_subject_left();
bool has_subject_left();

//! Readable once it has; -1 where there is none.
int subject_left_fd();

}  // namespace warplens
