"""call URL TOOL ARGUMENTS, or tour URL PREFIXES: a session with the Python SDK 2.x, in the mode that $MODE names.

A tour does with one session all that its servers, named by PREFIXES, are good for, and says what it saw.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from mcp import Client, MCPError


async def all_of(list_page, field):
    found, cursor = [], None
    while True:
        page = await list_page(cursor=cursor)
        found += getattr(page, field)
        cursor = page.next_cursor
        if not cursor:
            return found


async def call(url, tool, arguments):
    async with Client(url, mode=os.environ["MODE"]) as client:
        tools = [listed.name for listed in await all_of(client.list_tools, "tools")]
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({"protocol": client.protocol_version, "tools": tools, "text": result.content[0].text}))


class Tour:
    def __init__(self):
        self.seen = {"asked": [], "logs": 0}
        self.updated = asyncio.Event()
        self.read = asyncio.Event()

    async def elicit(self, context, params):
        if params.mode == "url":
            return types.ElicitResult(action="accept")
        self.seen["asked"].append("elicitation")
        return types.ElicitResult(action="accept", content={"name": "Ann", "check": True})

    async def sample(self, context, params):
        self.seen["asked"].append("sampling")
        content = types.TextContent(type="text", text="It was a model.")
        return types.CreateMessageResult(role="assistant", content=content, model="none", stop_reason="endTurn")

    async def roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/boats", name="boats")])

    async def log(self, params):
        self.seen["logs"] += 1

    async def message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.seen["updated"] = message.params.uri
            self.updated.set()
        if isinstance(message, types.ElicitCompleteNotification):
            self.seen["read"] = message.params.elicitation_id
            self.read.set()

    async def run(self, url, prefixes):
        client = Client(
            url,
            mode=os.environ["MODE"],
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            message_handler=self.message,
        )
        async with client:
            self.client = client
            self.seen["protocol"] = client.protocol_version
            await self.lists()
            await self.calls(prefixes["calls"])
            if "everything" in prefixes:
                await self.everything(prefixes["everything"])
            if "fixture" in prefixes:
                await self.fixture(prefixes["fixture"])
        async with Client(url, mode=os.environ["MODE"]) as client:
            tool, arguments = next(iter(prefixes["calls"].items()))
            self.seen["again"] = text(await client.call_tool(tool, arguments))
        print(json.dumps(self.seen))

    async def lists(self):
        client, seen = self.client, self.seen
        seen["tools"] = [tool.name for tool in await all_of(client.list_tools, "tools")]
        seen["prompts"] = [prompt.name for prompt in await all_of(client.list_prompts, "prompts")]
        seen["resources"] = [str(resource.uri) for resource in await all_of(client.list_resources, "resources")]
        templates = await all_of(client.list_resource_templates, "resource_templates")
        seen["templates"] = [template.uri_template for template in templates]

    async def calls(self, calls):
        called = {tool: text(await self.client.call_tool(tool, arguments)) for tool, arguments in calls.items()}
        self.seen["calls"] = called

    async def everything(self, prefix):
        client, seen = self.client, self.seen
        prompt = await client.get_prompt(f"{prefix}args-prompt", {"city": "Kiel"})
        seen["prompt"] = prompt.messages[0].content.text
        seen["resource"] = (await client.read_resource("demo://resource/dynamic/text/1")).contents[0].text
        reference = types.PromptReference(type="ref/prompt", name=f"{prefix}completable-prompt")
        completed = await client.complete(reference, {"name": "department", "value": "S"})
        seen["completion"] = completed.completion.values
        seen["elicitation"] = text(await client.call_tool(f"{prefix}trigger-elicitation-request", {}))
        sampling = {"prompt": "Say something", "maxTokens": 20}
        seen["sampling"] = text(await client.call_tool(f"{prefix}trigger-sampling-request", sampling))
        seen["roots"] = text(await client.call_tool(f"{prefix}get-roots-list", {}))
        seen["progress"] = []

        async def progressed(progress, total, message):
            seen["progress"].append([progress, total])

        long = {"duration": 1, "steps": 4}
        done = await client.call_tool(f"{prefix}trigger-long-running-operation", long, progress_callback=progressed)
        seen["long"] = text(done)
        await client.subscribe_resource("demo://resource/dynamic/text/1")
        await client.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await asyncio.wait_for(self.updated.wait(), 20)
        await client.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await client.unsubscribe_resource("demo://resource/dynamic/text/1")

    async def fixture(self, prefix):
        client, seen = self.client, self.seen
        seen["logged"] = []
        for level in ("info", "error"):
            await client.set_logging_level(level)
            seen["logs"] = 0
            await client.call_tool(f"{prefix}test_tool_with_logging", {})
            seen["logged"].append(seen["logs"])
        seen["reconnection"] = text(await client.call_tool(f"{prefix}test_reconnection", {}))
        page = {"elicitation": "consent", "apart": True}
        seen["opened"] = text(await client.call_tool(f"{prefix}test_elicitation_url", page))
        await asyncio.wait_for(self.read.wait(), 20)

        async def waits_cancelled():
            return int(text(await client.call_tool(f"{prefix}test_waits_cancelled", {})))

        before = await waits_cancelled()
        runs = asyncio.Event()

        async def progressed(progress, total, message):
            runs.set()

        wait = asyncio.create_task(client.call_tool(f"{prefix}test_wait", {}, progress_callback=progressed))
        await asyncio.wait_for(runs.wait(), 20)
        wait.cancel()
        try:
            await wait
        except (asyncio.CancelledError, MCPError):
            seen["cancelled"] = True
        async with asyncio.timeout(20):
            while await waits_cancelled() == before:
                await asyncio.sleep(0.05)
        seen["noticed"] = True


def text(result):
    return result.content[0].text


verb, url, *rest = sys.argv[1:]
asyncio.run(call(url, *rest) if verb == "call" else Tour().run(url, json.loads(rest[0])))
