"""Recording begins in the middle, while 400 ms of earlier work still run on the GPU."""
import torch
from steps import model
net = model(1024, 8); x = torch.randn(64, 512, 1024, device="cuda"); optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
def step(): loss = net(x).square().mean(); optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
for _ in range(3): step()
torch.cuda.synchronize()
for _ in range(12): step()
torch.cuda.profiler.start()
for _ in range(4): step()
small = torch.ones(64).cuda()
torch.cuda.synchronize()
torch.cuda.profiler.stop()
