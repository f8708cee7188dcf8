// What both TypeScript clients do with a session: they differ in how they connect, register handlers and call.

// All pages of a list.
export async function allOf(listPage, field) {
  const found = [];
  let cursor;
  do {
    const page = await listPage({ cursor });
    found.push(...page[field]);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

export const text = (result) => result.content[0].text;

export const within = (promise, seconds) =>
  Promise.race([
    promise,
    new Promise((_, reject) => setTimeout(() => reject(new Error("waited in vain")), seconds * 1000).unref()),
  ]);

// Does with one session all that its servers, named by their prefixes, are good for, and returns what it saw.
//
// `connect(handlers)` gives a connected client, its transport, and `call(name, arguments, options)`.
export async function tour(connect, prefixes) {
  const seen = { asked: [], told: [] };
  let logs = 0;
  let isUpdated;
  const updated = new Promise((resolve) => (isUpdated = resolve));
  const { client, transport, call } = await connect({
    elicit: async () => {
      seen.asked.push("elicitation");
      return { action: "accept", content: { name: "Ann", check: true } };
    },
    sample: async () => {
      seen.asked.push("sampling");
      const content = { type: "text", text: "It was a model." };
      return { role: "assistant", content, model: "none", stopReason: "endTurn" };
    },
    roots: async () => ({ roots: [{ uri: "file:///srv/boats", name: "boats" }] }),
    log: ({ params }) => {
      logs += 1;
      if (String(params.data).startsWith("Received")) seen.told.push(params.data.trim());
    },
    updated: (notification) => isUpdated(notification.params.uri),
  });
  seen.protocol = transport.protocolVersion;
  seen.tools = (await allOf((page) => client.listTools(page), "tools")).map((tool) => tool.name);
  seen.prompts = (await allOf((page) => client.listPrompts(page), "prompts")).map((prompt) => prompt.name);
  seen.resources = (await allOf((page) => client.listResources(page), "resources")).map((resource) => resource.uri);
  const templates = await allOf((page) => client.listResourceTemplates(page), "resourceTemplates");
  seen.templates = templates.map((template) => template.uriTemplate);
  seen.calls = {};
  for (const [tool, args] of Object.entries(prefixes.calls)) seen.calls[tool] = text(await call(tool, args));

  if (prefixes.everything !== undefined) {
    const own = (name) => prefixes.everything + name;
    const uri = "demo://resource/dynamic/text/1";
    const prompt = await client.getPrompt({ name: own("args-prompt"), arguments: { city: "Kiel" } });
    seen.prompt = prompt.messages[0].content.text;
    seen.resource = (await client.readResource({ uri })).contents[0].text;
    const ref = { type: "ref/prompt", name: own("completable-prompt") };
    const completed = await client.complete({ ref, argument: { name: "department", value: "S" } });
    seen.completion = completed.completion.values;
    seen.elicitation = text(await call(own("trigger-elicitation-request"), {}));
    const sampling = { prompt: "Say something", maxTokens: 20 };
    seen.sampling = text(await call(own("trigger-sampling-request"), sampling));
    seen.roots = text(await call(own("get-roots-list"), {}));
    seen.progress = [];
    const onprogress = ({ progress, total }) => seen.progress.push([progress, total]);
    const long = { duration: 1, steps: 4 };
    seen.long = text(await call(own("trigger-long-running-operation"), long, { onprogress }));
    await client.setLoggingLevel("info");
    await client.subscribeResource({ uri });
    await call(own("toggle-subscriber-updates"), {});
    seen.updated = await within(updated, 20);
    await call(own("toggle-subscriber-updates"), {});
    await client.setLoggingLevel("error");
    await client.unsubscribeResource({ uri });
  }

  if (prefixes.fixture !== undefined) {
    const own = (name) => prefixes.fixture + name;
    seen.logged = [];
    for (const level of ["info", "error"]) {
      await client.setLoggingLevel(level);
      logs = 0;
      await call(own("test_tool_with_logging"), {});
      seen.logged.push(logs);
    }
    seen.reconnection = text(await call(own("test_reconnection"), {}));
    const waitsCancelled = async () => text(await call(own("test_waits_cancelled"), {}));
    const before = await waitsCancelled();
    const giveUp = new AbortController();
    const waiting = call(own("test_wait"), {}, { signal: giveUp.signal, onprogress: () => giveUp.abort("no longer wanted") });
    seen.cancelled = await waiting.then(() => false, () => true);
    const noticed = async () => {
      while ((await waitsCancelled()) === before) await new Promise((resolve) => setTimeout(resolve, 50));
      return true;
    };
    seen.noticed = await within(noticed(), 20);
  }

  await transport.terminateSession();
  await client.close();
  const again = await connect({});
  const [tool, args] = Object.entries(prefixes.calls)[0];
  seen.again = text(await again.call(tool, args));
  await again.transport.terminateSession();
  await again.client.close();
  return seen;
}
