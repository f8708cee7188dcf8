"""URL TOOL ARGUMENTS: lists the tools and calls one with the Python SDK 2.x, in the mode that $MODE names."""

import asyncio
import json
import os
import sys

from mcp import Client


async def main(url, tool, arguments):
    async with Client(url, mode=os.environ["MODE"]) as client:
        tools, cursor = [], None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools += [listed.name for listed in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({"protocol": client.protocol_version, "tools": tools, "text": result.content[0].text}))


asyncio.run(main(*sys.argv[1:]))
