"""Sequence lengths differ from step to step and the module holds a Python number that changes: torch.compile compiles again."""
import torch
from steps import FIX, loop, model
class Scaled(torch.nn.Module):
    def __init__(self): super().__init__(); self.inner = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)); self.epoch = 0
    def forward(self, x): return self.inner(x) * (1.0 + self.epoch)
net = Scaled().cuda(); compiled = torch.compile(net); optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)
x = torch.randn(64, 128, 512, device="cuda")
def step(i):
    if not FIX and i % 5 == 0: net.epoch = net.epoch + 1
    loss = compiled(x).square().mean(); optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
loop(step, 60)
