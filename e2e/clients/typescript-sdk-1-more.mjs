// What the TypeScript SDK 1.x does besides a tour, a session each: elicitations that are links, tasks of both sides, and
// tools that work on something.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks";
import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ElicitationCompleteNotificationSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { allOf, text, within } from "./typescript-tour.mjs";

const PAGE = "https://boats.test/harbour";

async function begin(url, options, prepare = () => {}) {
  const client = new Client({ name: "typescript-1", version: "1" }, options);
  prepare(client);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const tools = (await allOf((page) => client.listTools(page), "tools")).map((tool) => tool.name);
  const call = (name, args) => client.callTool({ name, arguments: args });
  const end = async () => {
    await transport.terminateSession();
    await client.close();
  };
  return { client, tools, call, end };
}

// Something to wait for that others count.
function counter() {
  const waiting = [];
  const seen = [];
  return {
    seen,
    add(what) {
      seen.push(what);
      for (const look of waiting) look();
    },
    until: (length) => within(new Promise((resolve) => {
      const look = () => seen.length >= length && resolve(seen);
      waiting.push(look);
      look();
    }), 20),
  };
}

// Elicitations of the mode `url`: a question, a refusal that names what must be opened first, and the news of the end.
export async function links(url, { everything, fixture }) {
  const asked = [];
  const completed = counter();
  const { tools, call, end } = await begin(url, { capabilities: { elicitation: { form: {}, url: {} } } }, (client) => {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      asked.push([params.mode, params.url, params.elicitationId]);
      return { action: params.elicitationId === "declined" ? "decline" : "accept" };
    });
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, ({ params }) => completed.add(params.elicitationId));
  });
  const link = (elicitationId, more) =>
    call(everything + "trigger-url-elicitation", { url: PAGE, message: "Please look.", elicitationId, ...more });
  const accepted = text(await link("accepted"));
  const declined = text(await link("declined"));
  const required = await link("later", { errorPath: true }).then(
    () => null,
    (error) => ({ code: error.code, elicitations: error.elicitations.map(({ mode, url }) => [mode, url]) }),
  );
  const retried = text(await link("later", { errorPath: true }));
  const page = (elicitation, apart) => call(fixture + "test_elicitation_url", { elicitation, apart });
  const opened = [text(await page("within", false)), text(await page("apart", true))];
  await completed.until(2);
  await end();
  return { tools, asked, accepted, declined, required, retried, opened, completed: completed.seen };
}

// A task of the server's that asks on its way, one that is cancelled, and one that this client runs for the server.
export async function tasks(url, { everything }) {
  const taskStore = new InMemoryTaskStore();
  const requests = { elicitation: { create: {} } };
  const capabilities = { elicitation: {}, tasks: { list: {}, cancel: {}, requests } };
  const asked = [];
  const { client, call, end } = await begin(url, { capabilities, taskStore }, (client) => {
    client.setRequestHandler(ElicitRequestSchema, async ({ params }, extra) => {
      if (!params.task) {
        asked.push(params._meta["io.modelcontextprotocol/related-task"].taskId);
        return { action: "accept", content: { interpretation: "historical" } };
      }
      const task = await extra.taskStore.createTask({ ttl: params.task.ttl, pollInterval: 100 });
      asked.push(task.taskId);
      const answer = { action: "accept", content: { name: "Ann", favoriteColor: "Blue", agreeToTerms: true } };
      await extra.taskStore.storeTaskResult(task.taskId, "completed", answer);
      return { task };
    });
  });
  const tool = { name: everything + "simulate-research-query", arguments: { topic: "boats", ambiguous: true } };
  const seen = { asked, statuses: [] };
  for await (const message of client.experimental.tasks.callToolStream(tool, CallToolResultSchema, { task: { ttl: 60000 } })) {
    if (message.type === "taskCreated") seen.created = message.task.taskId;
    if (message.type === "taskStatus" && seen.statuses.at(-1) !== message.task.status) seen.statuses.push(message.task.status);
    if (message.type === "result") seen.report = text(message.result).split("\n")[0];
    if (message.type === "error") throw message.error;
  }
  const again = await client.request({ method: "tools/call", params: tool }, CreateTaskResultSchema, { task: { ttl: 60000 } });
  const second = again.task.taskId;
  seen.second = second;
  seen.cancelled = (await client.experimental.tasks.cancelTask(second)).status;
  seen.afterwards = (await client.experimental.tasks.getTask(second)).status;
  const { tasks } = await client.experimental.tasks.listTasks();
  seen.listed = tasks.map(({ taskId, status }) => [taskId, status]);
  const failure = (promise) => promise.then(() => null, (error) => error.code);
  seen.unknown = await failure(client.experimental.tasks.getTask(second + "0"));
  seen.result = text(await client.experimental.tasks.getTaskResult(seen.created, CallToolResultSchema)).split("\n")[0];
  const answered = await call(everything + "trigger-elicitation-request-async", {});
  seen.answered = answered.content.slice(0, 2).map((content) => content.text);
  await end();
  taskStore.cleanup();
  return seen;
}

// Tools, called in order, and in one place perhaps news: that the roots, which only a client with roots has, are others
// now. A tool with `until` is called again until it says that.
export async function work(url, { roots, calls }) {
  const asked = counter();
  const { client, call, end } = await begin(url, { capabilities: roots ? { roots: { listChanged: true } } : {} }, (client) => {
    const answer = async () => {
      asked.add("roots");
      return { roots: roots.map((uri) => ({ uri })) };
    };
    if (roots) client.setRequestHandler(ListRootsRequestSchema, answer);
  });
  const once = ({ tool, arguments: args }) =>
    call(tool, args).then(
      (result) => ({ text: text(result), isError: result.isError ?? false }),
      (error) => ({ text: error.message, code: error.code }),
    );
  const patiently = async (step) => {
    let said = await once(step);
    while (step.until && said.text !== step.until) said = await once(step);
    return said;
  };
  const done = [];
  for (const step of calls) {
    if (step.tool) {
      done.push(await within(patiently(step), 20));
    } else {
      // The server has asked for those of the beginning by now, or does so yet; and then for these.
      await asked.until(1);
      await client.sendRootsListChanged();
      await asked.until(2);
    }
  }
  await end();
  return done;
}

// Questions of calls that are not alone: each is asked while another call of the session comes and goes.
export async function together(url, { everything }) {
  const { call, end } = await begin(url, { capabilities: { elicitation: {} } }, (client) => {
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { name: "Ann", check: true } }));
  });
  await call(everything + "echo", { message: "ahoy" });
  const said = [];
  for (let round = 0; round < 16; round += 1) {
    const asking = call(everything + "trigger-elicitation-request", {});
    const all = await Promise.all([asking, call(everything + "echo", { message: "ahoy" })]);
    said.push(all.map(text));
  }
  await end();
  return said;
}

// Two sessions that meet in one process: the first hears of what the second does, and reads it.
export async function meet(url, { memory, entities }) {
  const uri = "memory://knowledge-graph";
  const updated = counter();
  const first = await begin(url, {}, (client) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => updated.add(params.uri));
  });
  const second = await begin(url, {});
  await first.client.subscribeResource({ uri });
  await second.call(memory + "create_entities", { entities });
  await updated.until(1);
  const graph = text(await first.call(memory + "read_graph", {}));
  const resource = (await first.client.readResource({ uri })).contents[0].text;
  await first.end();
  const afterwards = text(await second.call(memory + "read_graph", {}));
  await second.end();
  return { updated: updated.seen, graph, resource, afterwards };
}
