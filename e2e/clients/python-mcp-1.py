"""call URL TOOL ARGUMENTS, or tour or tasks URL PREFIXES: a session with the Python SDK 1.x.

A tour does with one session all that its servers, named by PREFIXES, are good for, and says what it saw; tasks are those
that a server runs, of which one asks on its way and one is cancelled.
"""

import asyncio
import contextlib
import json
import sys

from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl

WATCHED = AnyUrl("demo://resource/dynamic/text/1")


@contextlib.asynccontextmanager
async def session_at(url, **callbacks):
    async with streamablehttp_client(url) as (read, write, _):
        async with ClientSession(read, write, **callbacks) as session:
            answer = await session.initialize()
            yield session, answer.protocolVersion


async def all_of(list_page, field):
    found, cursor = [], None
    while True:
        page = await list_page(cursor)
        found += getattr(page, field)
        cursor = page.nextCursor
        if not cursor:
            return found


async def call(url, tool, arguments):
    async with session_at(url) as (session, protocol):
        tools = [listed.name for listed in await all_of(session.list_tools, "tools")]
        result = await session.call_tool(tool, json.loads(arguments))
        print(json.dumps({"protocol": protocol, "tools": tools, "text": text(result)}))


async def tasks(url, prefixes):
    seen = {"statuses": [], "asked": []}

    async def elicit(context, params):
        seen["asked"].append(context.meta.model_extra["io.modelcontextprotocol/related-task"]["taskId"])
        return types.ElicitResult(action="accept", content={"interpretation": "historical"})

    async with session_at(url, elicitation_callback=elicit) as (session, _):
        verbs, tool = session.experimental, f"{prefixes['everything']}simulate-research-query"

        async def begin():
            created = await verbs.call_tool_as_task(tool, {"topic": "boats", "ambiguous": True})
            return created.task.taskId

        async def report(task):
            return text(await verbs.get_task_result(task, types.CallToolResult)).split("\n")[0]

        seen["created"] = created = await begin()
        async for task in verbs.poll_task(created):
            if task.status not in seen["statuses"]:
                seen["statuses"].append(task.status)
            if task.status == "input_required":
                seen["report"] = await report(created)
                break
        seen["second"] = second = await begin()
        seen["cancelled"] = (await verbs.cancel_task(second)).status
        seen["afterwards"] = (await verbs.get_task(second)).status
        seen["listed"] = [[task.taskId, task.status] for task in (await verbs.list_tasks()).tasks]
        try:
            await verbs.get_task(second + "0")
        except McpError as error:
            seen["unknown"] = error.error.code
        seen["result"] = await report(created)
    print(json.dumps(seen))


class Tour:
    def __init__(self):
        self.seen = {"asked": [], "logs": 0, "told": []}
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
        return types.CreateMessageResult(role="assistant", content=content, model="none", stopReason="endTurn")

    async def roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/boats", name="boats")])

    async def log(self, params):
        self.seen["logs"] += 1
        if str(params.data).startswith("Received"):
            self.seen["told"].append(params.data.strip())

    async def message(self, message):
        match getattr(message, "root", None):
            case types.ResourceUpdatedNotification(params=params):
                self.seen["updated"] = str(params.uri)
                self.updated.set()
            case types.ElicitCompleteNotification(params=params):
                self.seen["read"] = params.elicitationId
                self.read.set()

    async def run(self, url, prefixes):
        callbacks = {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.roots,
            "logging_callback": self.log,
            "message_handler": self.message,
        }
        async with session_at(url, **callbacks) as (self.session, self.seen["protocol"]):
            await self.lists()
            await self.calls(prefixes["calls"])
            if "everything" in prefixes:
                await self.everything(prefixes["everything"])
            if "fixture" in prefixes:
                await self.fixture(prefixes["fixture"])
        async with session_at(url) as (session, _):
            tool, arguments = next(iter(prefixes["calls"].items()))
            self.seen["again"] = text(await session.call_tool(tool, arguments))
        print(json.dumps(self.seen))

    async def lists(self):
        session, seen = self.session, self.seen
        seen["tools"] = [tool.name for tool in await all_of(session.list_tools, "tools")]
        seen["prompts"] = [prompt.name for prompt in await all_of(session.list_prompts, "prompts")]
        seen["resources"] = [str(resource.uri) for resource in await all_of(session.list_resources, "resources")]
        templates = await all_of(session.list_resource_templates, "resourceTemplates")
        seen["templates"] = [template.uriTemplate for template in templates]

    async def calls(self, calls):
        called = {tool: text(await self.session.call_tool(tool, arguments)) for tool, arguments in calls.items()}
        self.seen["calls"] = called

    async def everything(self, prefix):
        session, seen = self.session, self.seen
        prompt = await session.get_prompt(f"{prefix}args-prompt", {"city": "Kiel"})
        seen["prompt"] = prompt.messages[0].content.text
        seen["resource"] = (await session.read_resource(WATCHED)).contents[0].text
        reference = types.PromptReference(type="ref/prompt", name=f"{prefix}completable-prompt")
        completed = await session.complete(reference, {"name": "department", "value": "S"})
        seen["completion"] = completed.completion.values
        seen["elicitation"] = text(await session.call_tool(f"{prefix}trigger-elicitation-request", {}))
        sampling = {"prompt": "Say something", "maxTokens": 20}
        seen["sampling"] = text(await session.call_tool(f"{prefix}trigger-sampling-request", sampling))
        seen["roots"] = text(await session.call_tool(f"{prefix}get-roots-list", {}))
        seen["progress"] = []

        async def progressed(progress, total, message):
            seen["progress"].append([progress, total])

        long = {"duration": 1, "steps": 4}
        done = await session.call_tool(f"{prefix}trigger-long-running-operation", long, progress_callback=progressed)
        seen["long"] = text(done)
        await session.set_logging_level("info")
        await session.subscribe_resource(WATCHED)
        await session.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await asyncio.wait_for(self.updated.wait(), 20)
        await session.call_tool(f"{prefix}toggle-subscriber-updates", {})
        await session.set_logging_level("error")
        await session.unsubscribe_resource(WATCHED)

    async def fixture(self, prefix):
        session, seen = self.session, self.seen
        seen["logged"] = []
        for level in ("info", "error"):
            await session.set_logging_level(level)
            seen["logs"] = 0
            await session.call_tool(f"{prefix}test_tool_with_logging", {})
            seen["logged"].append(seen["logs"])
        seen["reconnection"] = text(await session.call_tool(f"{prefix}test_reconnection", {}))
        page = {"elicitation": "consent", "apart": True}
        seen["opened"] = text(await session.call_tool(f"{prefix}test_elicitation_url", page))
        await asyncio.wait_for(self.read.wait(), 20)

        async def waits_cancelled():
            return int(text(await session.call_tool(f"{prefix}test_waits_cancelled", {})))

        before = await waits_cancelled()
        runs = asyncio.Event()

        async def progressed(progress, total, message):
            runs.set()

        # This SDK tells the server nothing when a call is given up: who wants that says it, and has to know the id.
        request = session._request_id
        wait = asyncio.create_task(session.call_tool(f"{prefix}test_wait", {}, progress_callback=progressed))
        await asyncio.wait_for(runs.wait(), 20)
        params = types.CancelledNotificationParams(requestId=request, reason="no longer wanted")
        await session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
        async with asyncio.timeout(20):
            while await waits_cancelled() == before:
                await asyncio.sleep(0.05)
        seen["noticed"] = True
        wait.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await wait
        seen["cancelled"] = True


def text(result):
    return result.content[0].text


verb, url, *rest = sys.argv[1:]
if verb == "call":
    asyncio.run(call(url, *rest))
else:
    asyncio.run((tasks if verb == "tasks" else Tour().run)(url, json.loads(rest[0])))
