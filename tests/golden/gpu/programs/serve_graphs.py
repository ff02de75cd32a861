"""A server that captures a CUDA graph for each batch size at its start, then answers requests that arrive now and then."""
import asyncio, random, time, torch
from steps import model
net = model(512, 6).eval().half(); graphs = {}
with torch.no_grad():
    for size in (1, 2, 4, 8, 12, 16, 24, 32):
        x = torch.zeros(size, 64, 512, device="cuda", dtype=torch.half); side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3): net(x)
        torch.cuda.current_stream().wait_stream(side); graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): y = net(x)
        graphs[size] = graph, x, y
async def request(i):
    size = random.choice(list(graphs)); graph, x, y = graphs[size]
    x.copy_(torch.randn(x.shape, dtype=torch.half).pin_memory(), non_blocking=True); graph.replay(); y.float().mean().item()
async def main():
    random.seed(0); t = time.perf_counter()
    for i in range(300): await asyncio.sleep(random.expovariate(200)); await request(i)
    print(f"{time.perf_counter() - t:.2f} s, 300 requests")
asyncio.run(main())
