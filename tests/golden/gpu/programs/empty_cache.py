"""Calls torch.cuda.empty_cache() in every step: each step allocates and frees through the driver."""
import torch
from steps import FIX, loop, model
net = model(); optimizer = torch.optim.AdamW(net.parameters(), fused=True); x = torch.randn(32, 256, 512, device="cuda")
def step(i):
    loss = net(x).square().mean(); optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
    if not FIX: torch.cuda.empty_cache()
loop(step, 80)
