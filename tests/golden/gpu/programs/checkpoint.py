"""Saves a checkpoint every 10 steps while the GPU waits. --fix saves once at the end."""
import torch
from steps import FIX, loop, model
net = model(768, 8); optimizer = torch.optim.AdamW(net.parameters(), fused=True); x = torch.randn(32, 256, 768, device="cuda")
def step(i):
    loss = net(x).square().mean(); optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
    if not FIX and i % 10 == 9: torch.save({"model": net.state_dict(), "optimizer": optimizer.state_dict()}, "checkpoint.pt")
loop(step, 60)
