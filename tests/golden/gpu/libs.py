"""Libraries that have NVTX in them, on one GPU: NCCL with one rank, cuSOLVER, cuSPARSE, cuDNN, cuBLAS."""
import os, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
dist.init_process_group("nccl", rank=0, world_size=1)
x = torch.randn(1 << 20, device="cuda")
for _ in range(5): dist.all_reduce(x); dist.broadcast(x, 0); dist.all_gather_into_tensor(torch.empty_like(x), x)
torch.cuda.synchronize()
a = torch.randn(512, 512, device="cuda"); b = torch.randn(512, 8, device="cuda")
for _ in range(3): torch.linalg.solve(a, b); torch.linalg.eigh(a @ a.T); torch.linalg.svd(a)
s = torch.eye(512, device="cuda").to_sparse_csr()
for _ in range(3): s @ b
y = torch.nn.functional.conv2d(torch.randn(8, 16, 64, 64, device="cuda"), torch.randn(16, 16, 3, 3, device="cuda"))
torch.cuda.synchronize()
dist.destroy_process_group()
