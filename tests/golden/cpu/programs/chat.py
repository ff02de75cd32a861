"""A service of asyncio with 20 clients that talk to it: nobody waits long, the loop is never blocked."""

import asyncio


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each line."""
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def talk(port: int, number: int) -> None:
    """Send 60 lines and wait for each answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for line in range(60):
        writer.write(f"{number} says {line}\n".encode())
        await writer.drain()
        await reader.readline()
        await asyncio.sleep(0.02)
    writer.close()


async def main() -> None:
    """Serve 20 clients."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        await asyncio.gather(*(talk(port, number) for number in range(20)))


asyncio.run(main())
