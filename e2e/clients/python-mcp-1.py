"""URL TOOL ARGUMENTS: lists the tools and calls one with the Python SDK 1.x."""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url, tool, arguments):
    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write) as session:
            answer = await session.initialize()
            tools, cursor = [], None
            while True:
                page = await session.list_tools(cursor=cursor)
                tools += [listed.name for listed in page.tools]
                cursor = page.nextCursor
                if not cursor:
                    break
            result = await session.call_tool(tool, json.loads(arguments))
            print(json.dumps({"protocol": answer.protocolVersion, "tools": tools, "text": result.content[0].text}))


asyncio.run(main(*sys.argv[1:]))
