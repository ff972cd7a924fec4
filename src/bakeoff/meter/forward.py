"""Forward a port inside a sandbox without network to the meter, and to nothing else.

python3 -I -S forward.py SOCKET PORT COMMAND…

The command replaces this process, so that exit code and signals are its own. Another process
forwards until the sandbox ends. Only the standard library is used.
"""

import os
import socket
import sys

MAX_CONNECTIONS = 64


def forward(listening: socket.socket, target: str) -> None:
    """Forward every connection on the port to the socket `target`, until the sandbox ends."""
    import asyncio  # imported late, because the command need not wait for it

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(1 << 16):
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass  # the other direction ends as well
        finally:
            writer.close()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_unix_connection(target)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, back), pipe(there, writer))

    async def serve() -> None:
        server = await asyncio.start_server(connect, sock=listening, backlog=MAX_CONNECTIONS)
        await server.serve_forever()

    asyncio.run(serve())


def main() -> None:
    """Start the forwarding process, then run the command in this process."""
    target, port, *command = sys.argv[1:]
    listening = socket.create_server(("127.0.0.1", int(port)), backlog=MAX_CONNECTIONS)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # accepted connections inherit it
    if os.fork() == 0:
        if os.fork() == 0:  # not a child of the command, which may wait for its children
            # Close the command's streams and leave its process group, to get none of its signals.
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            forward(listening, target)
        os._exit(0)
    os.wait()
    listening.close()
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is what the sandbox is for
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        os._exit(127 if isinstance(problem, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
