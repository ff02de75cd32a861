"""What the programs share: a GPT of some size, a loop that prints ms per step."""
import sys, time, torch
FIX = "--fix" in sys.argv
class Block(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm, self.attn = torch.nn.LayerNorm(n), torch.nn.MultiheadAttention(n, 8, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.LayerNorm(n), torch.nn.Linear(n, 4 * n), torch.nn.GELU(), torch.nn.Linear(4 * n, n))
    def forward(self, x):
        y = self.norm(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)
def model(n=512, depth=4):
    torch.manual_seed(0)
    return torch.nn.Sequential(*[Block(n) for _ in range(depth)]).cuda()
def loop(step, count, warm=3):
    for i in range(warm): step(i)
    torch.cuda.synchronize(); t = time.perf_counter()
    for i in range(count): step(i)
    torch.cuda.synchronize(); took = time.perf_counter() - t
    print(f"{1e3 * took / count:.3f} ms/step, {count} steps, {1e3 * took:.1f} ms")
