"""Boolean masks in every step: their size is needed on the host, which waits for the GPU. --fix multiplies by the mask."""
import torch
from steps import FIX, loop, model
net = model(256, 2); optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, foreach=True)
x = torch.randn(16, 128, 256, device="cuda"); mask = torch.rand(16, 128, device="cuda") > 0.3
def step(i):
    y = net(x)
    loss = (y * mask[..., None]).square().sum() / (mask.sum() * 256) if FIX else y[mask].square().mean()
    optimizer.zero_grad(set_to_none=True); loss.backward(); optimizer.step()
loop(step, 200)
