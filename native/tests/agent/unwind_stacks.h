// Stacks of several shapes: each way ends in `leaf`.
#pragma once

namespace warplens::test {

using Leaf = void (*)();

void by_calls(Leaf leaf);
void by_recursion(Leaf leaf, int depth);
void by_alloca(Leaf leaf, int size);
void by_library(Leaf leaf);  // through qsort
void by_alignment(Leaf leaf);
void by_exception_frames(Leaf leaf);
void by_signal(Leaf leaf);

}  // namespace warplens::test
