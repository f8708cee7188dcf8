"""tour URL PREFIXES: a session with the client of fastmcp, in the mode that $MODE names.

A tour does with one session all that its servers, named by PREFIXES, are good for, and says what it saw.
"""

import asyncio
import json
import os
import sys

import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult

WATCHED = "demo://resource/dynamic/text/1"


class Tour:
    def __init__(self):
        self.seen = {"asked": [], "logs": 0}
        self.updated = asyncio.Event()

    async def elicit(self, message, response_type, params, context):
        self.seen["asked"].append("elicitation")
        return ElicitResult(action="accept", content={"name": "Ann", "check": True})

    async def sample(self, messages, params, context):
        self.seen["asked"].append("sampling")
        return "It was a model."

    async def log(self, message):
        self.seen["logs"] += 1

    async def message(self, message):
        if isinstance(message, types.ResourceUpdatedNotification):
            self.seen["updated"] = message.params.uri
            self.updated.set()

    async def run(self, url, prefixes):
        client = Client(
            url,
            mode=os.environ["MODE"],
            elicitation_handler=self.elicit,
            sampling_handler=self.sample,
            roots=[types.Root(uri="file:///srv/boats", name="boats")],
            log_handler=self.log,
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
        # It turns the pages itself.
        seen["tools"] = [tool.name for tool in await client.list_tools()]
        seen["prompts"] = [prompt.name for prompt in await client.list_prompts()]
        seen["resources"] = [str(resource.uri) for resource in await client.list_resources()]
        seen["templates"] = [template.uri_template for template in await client.list_resource_templates()]

    async def calls(self, calls):
        called = {tool: text(await self.client.call_tool(tool, arguments)) for tool, arguments in calls.items()}
        self.seen["calls"] = called

    async def everything(self, prefix):
        client, seen = self.client, self.seen
        prompt = await client.get_prompt(f"{prefix}args-prompt", {"city": "Kiel"})
        seen["prompt"] = prompt.messages[0].content.text
        seen["resource"] = (await client.read_resource(WATCHED))[0].text
        reference = types.PromptReference(type="ref/prompt", name=f"{prefix}completable-prompt")
        seen["completion"] = (await client.complete(reference, {"name": "department", "value": "S"})).values
        seen["elicitation"] = text(await client.call_tool(f"{prefix}trigger-elicitation-request", {}))
        sampling = {"prompt": "Say something", "maxTokens": 20}
        seen["sampling"] = text(await client.call_tool(f"{prefix}trigger-sampling-request", sampling))
        seen["roots"] = text(await client.call_tool(f"{prefix}get-roots-list", {}))
        seen["progress"] = []

        async def progressed(progress, total, message):
            seen["progress"].append([progress, total])

        long = {"duration": 1, "steps": 4}
        done = await client.call_tool(f"{prefix}trigger-long-running-operation", long, progress_handler=progressed)
        seen["long"] = text(done)
        # It has no verb of its own for subscriptions: the session below it has.
        await client.session.subscribe_resource(WATCHED)
        await client.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await asyncio.wait_for(self.updated.wait(), 20)
        await client.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await client.session.unsubscribe_resource(WATCHED)

    async def fixture(self, prefix):
        client, seen = self.client, self.seen
        seen["logged"] = []
        for level in ("info", "error"):
            await client.set_logging_level(level)
            seen["logs"] = 0
            await client.call_tool(f"{prefix}test_tool_with_logging", {})
            seen["logged"].append(seen["logs"])
        seen["reconnection"] = text(await client.call_tool(f"{prefix}test_reconnection", {}))

        async def waits_cancelled():
            return int(text(await client.call_tool(f"{prefix}test_waits_cancelled", {})))

        before = await waits_cancelled()
        # A call that takes too long is what its users have to cancel by.
        try:
            await client.call_tool(f"{prefix}test_wait", {}, timeout=1)
        except Exception:
            seen["cancelled"] = True
        async with asyncio.timeout(20):
            while await waits_cancelled() == before:
                await asyncio.sleep(0.05)
        seen["noticed"] = True


def text(result):
    return result.content[0].text


_, url, prefixes = sys.argv[1:]
asyncio.run(Tour().run(url, json.loads(prefixes)))
