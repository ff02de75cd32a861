"""Two shapes by turns in a GPU that is almost full: the allocator frees its cache and asks the driver again in every step."""
import torch
from steps import FIX, loop, model
net = model(); optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
shapes = [torch.randn(48, 256, 512, device="cuda"), torch.randn(20, 640, 512, device="cuda")]
def step(i):
    loss = net(shapes[i % 2]).square().mean(); optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
for i in (0, 1): step(i); torch.cuda.synchronize(); torch.cuda.empty_cache()
most = torch.cuda.max_memory_allocated()
torch.cuda.set_per_process_memory_fraction((4 * most if FIX else 1.12 * most + (48 << 20)) / torch.cuda.get_device_properties(0).total_memory)
try: loop(step, 60)
finally: print(torch.cuda.memory_stats()["num_alloc_retries"], "retries", torch.cuda.max_memory_reserved() >> 20, "MiB")
