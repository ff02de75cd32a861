// Written by `make torch-abi` from the headers of PyTorch's wheels: the versions whose observers of operators are as torch.h says.
#pragma once

#include "torch.h"

namespace warplens {

inline constexpr TorchAbi kTorchAbis[] = {
    {2, 13, 200},
};

}  // namespace warplens
