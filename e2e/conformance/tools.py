"""The tools of the conformance server: those that the suite of 2025-11-25 calls, and some for tests of our own."""

import asyncio
import json

import mcp_types as types
from mcp import MCPError

from content import embedded, image, sound, text

SHORT_WAIT = 0.05  # seconds: what the suite wants between two notifications
LONG_WAIT = 60  # seconds: longer than any test waits
RETRY = 100  # milliseconds: how soon a client may come back to a stream that was closed
WATCHED = "test://watched-resource"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

levels = {}  # session -> the least level it wants to hear
subscriptions = {}  # session -> the URIs it wants to hear of


def session_key(ctx):
    if ctx.request is None:
        return None  # on stdio, where the process is the session
    return ctx.request.headers.get("mcp-session-id") or ctx.request.query_params.get("session_id")


TOOLS = {}


def tool(description, schema=None):
    """Makes a tool of the function, under its name. It gets the context and the arguments, and returns content."""

    def register(function):
        listed = types.Tool(
            name=function.__name__, description=description, input_schema=schema or {"type": "object"}
        )
        TOOLS[function.__name__] = (listed, function)
        return function

    return register


def one_string(name):
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


@tool("Returns text")
async def test_simple_text(ctx, arguments):
    return [text("This is a simple text response for testing.")]


@tool("Returns an image")
async def test_image_content(ctx, arguments):
    return [image()]


@tool("Returns sound")
async def test_audio_content(ctx, arguments):
    return [sound()]


@tool("Returns a resource")
async def test_embedded_resource(ctx, arguments):
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


@tool("Returns text, an image and a resource")
async def test_multiple_content_types(ctx, arguments):
    data = json.dumps({"test": "data", "value": 123})
    mixed = embedded("test://mixed-content-resource", "application/json", data)
    return [text("Multiple content types test:"), image(), mixed]


@tool("Logs while it runs")
async def test_tool_with_logging(ctx, arguments):
    for number, words in enumerate(("Tool execution started", "Tool processing data", "Tool execution completed")):
        await asyncio.sleep(SHORT_WAIT if number else 0)
        if LEVELS.index("info") >= LEVELS.index(levels.get(session_key(ctx), "debug")):
            await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)
    return [text("It has logged three times.")]


@tool("Fails")
async def test_error_handling(ctx, arguments):
    raise ValueError("This tool intentionally returns an error for testing")


@tool("Reports progress")
async def test_tool_with_progress(ctx, arguments):
    for progress in (0, 50, 100):
        await asyncio.sleep(SHORT_WAIT if progress else 0)
        await ctx.session.report_progress(progress, 100)
    return [text("It has reported three times.")]


@tool("Has the client's model say something", one_string("prompt"))
async def test_sampling(ctx, arguments):
    asked = types.SamplingMessage(role="user", content=text(arguments["prompt"]))
    answer = await ctx.session.create_message([asked], max_tokens=100, related_request_id=ctx.request_id)
    return [text(f"LLM response: {answer.content.text}")]


async def elicit(ctx, message, properties, required=()):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    answer = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"action={answer.action}, content={json.dumps(answer.content)}"


@tool("Asks the user", one_string("message"))
async def test_elicitation(ctx, arguments):
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    answer = await elicit(ctx, arguments["message"], properties, ("username", "email"))
    return [text(f"User response: {answer}")]


@tool("Asks the user, with a default for each kind of value")
async def test_elicitation_sep1034_defaults(ctx, arguments):
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return [text(f"Elicitation completed: {await elicit(ctx, 'Is this right?', properties)}")]


@tool("Asks the user to choose, in each way that there is")
async def test_elicitation_sep1330_enums(ctx, arguments):
    options, legacy = ["option1", "option2", "option3"], ["opt1", "opt2", "opt3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": legacy, "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return [text(f"Elicitation completed: {await elicit(ctx, 'Which ones?', properties)}")]


@tool("Sends the user to a page, and says when it was read: within the call, or apart from it", one_string("elicitation"))
async def test_elicitation_url(ctx, arguments):
    page, elicitation = "https://boats.test/consent", arguments["elicitation"]
    answer = await ctx.session.elicit_url("Please read this.", page, elicitation, related_request_id=ctx.request_id)
    related = None if arguments.get("apart") else ctx.request_id
    await ctx.session.send_elicit_complete(elicitation, related_request_id=related)
    return [text(f"action={answer.action}")]


@tool("Closes its stream and answers on the one that the client comes back to")
async def test_reconnection(ctx, arguments):
    if ctx.close_sse_stream:
        await ctx.close_sse_stream()
    await asyncio.sleep(2 * RETRY / 1000)
    return [text("It is here again.")]


@tool(
    "Tool with JSON Schema 2020-12 features",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema_2020_12_tool(ctx, arguments):
    return [text(json.dumps(arguments))]


waits_cancelled = 0


@tool("Waits until it is cancelled")
async def test_wait(ctx, arguments):
    global waits_cancelled
    # The first progress tells the client that it runs.
    await ctx.session.report_progress(0, LONG_WAIT)
    try:
        await asyncio.sleep(LONG_WAIT)
    except asyncio.CancelledError:
        waits_cancelled += 1
        raise
    return [text("Nobody cancelled it.")]


@tool("Says how many calls of test_wait were cancelled")
async def test_waits_cancelled(ctx, arguments):
    return [text(str(waits_cancelled))]


@tool("Says to this session, if it has subscribed, that the watched resource was updated")
async def test_touch_watched_resource(ctx, arguments):
    heard = WATCHED in subscriptions.get(session_key(ctx), set())
    if heard:
        await ctx.session.send_resource_updated(WATCHED)
    return [text(f"subscribed: {heard}")]


async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[listed for listed, _ in TOOLS.values()])


async def call_tool(ctx, params):
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"no tool {params.name}")
    try:
        content = await TOOLS[params.name][1](ctx, params.arguments or {})
    except ValueError as why:
        return types.CallToolResult(content=[text(str(why))], is_error=True)
    return types.CallToolResult(content=content)
