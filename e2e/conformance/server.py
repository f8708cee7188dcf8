"""An MCP server that has everything the conformance suite of 2025-11-25 asks for, on the Python SDK 2.x.

Listens on a free port of loopback, says its URL on stdout, and ends when it is killed. With `sse` it speaks HTTP+SSE, the
transport of 2024-11-05, in place of Streamable HTTP; with `stdio` it has no port and speaks on its pipes.
"""

import asyncio
import contextlib
import json
import socket
import sys

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

from content import embedded, image, png, text
from tools import RETRY, WATCHED, call_tool, levels, list_tools, session_key, subscriptions

EVENTS_HELD = 1000

# === resources ===

RESOURCES = {
    "test://static-text": ("text/plain", "This is the content of the static text resource."),
    "test://static-binary": ("image/png", None),
    WATCHED: ("text/plain", "Somebody watches this."),
}


async def list_resources(ctx, params):
    listed = [
        types.Resource(uri=uri, name=uri.removeprefix("test://"), description="For testing", mime_type=mime_type)
        for uri, (mime_type, _) in RESOURCES.items()
    ]
    return types.ListResourcesResult(resources=listed)


async def list_templates(ctx, params):
    template = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="template", description="For testing", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(ctx, params):
    uri = params.uri
    if uri in RESOURCES:
        mime_type, words = RESOURCES[uri]
        if words is None:
            contents = types.BlobResourceContents(uri=uri, mime_type=mime_type, blob=png())
        else:
            contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=words)
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri.removeprefix("test://template/").removesuffix("/data")
        words = json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=words)
    else:
        raise MCPError(-32002, f"no resource {uri}", {"uri": uri})
    return types.ReadResourceResult(contents=[contents])


async def subscribe(ctx, params):
    subscriptions.setdefault(session_key(ctx), set()).add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    subscriptions.get(session_key(ctx), set()).discard(params.uri)
    return types.EmptyResult()


# === prompts ===


def argument(name):
    return types.PromptArgument(name=name, description="For testing", required=True)


PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": [argument("arg1"), argument("arg2")],
    "test_prompt_with_embedded_resource": [argument("resourceUri")],
    "test_prompt_with_image": [],
}


async def list_prompts(ctx, params):
    listed = [types.Prompt(name=name, description="For testing", arguments=wanted) for name, wanted in PROMPTS.items()]
    return types.ListPromptsResult(prompts=listed)


async def get_prompt(ctx, params):
    given = params.arguments or {}
    missing = [wanted.name for wanted in PROMPTS.get(params.name, []) if wanted.name not in given]
    if params.name not in PROMPTS or missing:
        raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name}, or it lacks {missing}")
    match params.name:
        case "test_simple_prompt":
            contents = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            contents = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            contents = [resource, text("Please process the embedded resource above.")]
        case _:
            contents = [image(), text("Please analyze the image above.")]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content) for content in contents])


async def complete(ctx, params):
    words = [word for word in ("paris", "park", "party") if word.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=words, total=len(words), has_more=False))


# === the server ===


async def set_level(ctx, params):
    levels[session_key(ctx)] = params.level
    return types.EmptyResult()


class Events(EventStore):
    """What was sent, for those who come back: the latest events of all streams."""

    def __init__(self):
        self.sent = {}
        self.issued = 0

    async def store_event(self, stream_id, message):
        self.issued += 1
        self.sent[str(self.issued)] = (stream_id, message)
        if len(self.sent) > EVENTS_HELD:
            del self.sent[next(iter(self.sent))]
        return str(self.issued)

    async def replay_events_after(self, last_event_id, send_callback):
        if last_event_id not in self.sent:
            return None
        stream = self.sent[last_event_id][0]
        for event_id, (of, message) in list(self.sent.items()):
            if of == stream and message is not None and int(event_id) > int(last_event_id):
                await send_callback(EventMessage(message, event_id))
        return stream


async def on_pipes(server):
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def two_endpoints(server):
    # Of a server that is not wrapped the SDK serves Streamable HTTP alone; this is what it does with one that is.
    safe = TransportSecuritySettings(enable_dns_rebinding_protection=True, allowed_hosts=["127.0.0.1:*"])
    transport = SseServerTransport("/messages/", security_settings=safe)

    async def stream(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", stream), Mount("/messages/", transport.handle_post_message)])


async def main(speaks):
    server = Server(
        "conformance-server",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_set_logging_level=set_level,
    )
    if speaks == "stdio":
        return await on_pipes(server)
    if speaks == "sse":
        app, path = two_endpoints(server), "sse"
    else:
        # Host and Origin are checked, since the host is loopback.
        app = server.streamable_http_app(event_store=Events(), retry_interval=RETRY, host="127.0.0.1")
        path = "mcp"
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/{path}", flush=True)
    await uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener])


with contextlib.suppress(KeyboardInterrupt):
    asyncio.run(main(*(sys.argv[1:] or ["streamable-http"])))
