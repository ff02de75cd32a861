// Written by `make torch-abi` from the headers of PyTorch's wheels: the versions whose observers of operators are as torch.h says.
#pragma once

#include "torch.h"

namespace warplens {

inline constexpr TorchAbi kTorchAbis[] = {
    {2, 6, 200, 176},  {2, 7, 200, 176},  {2, 8, 200, 176},  {2, 9, 200, 176},  {2, 10, 200, 176},
    {2, 11, 200, 176}, {2, 12, 200, 176}, {2, 13, 200, 176}, {2, 14, 200, 176}, {2, 15, 200, 176},
};

}  // namespace warplens
