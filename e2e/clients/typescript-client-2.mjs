// call URL TOOL ARGUMENTS, or tour URL PREFIXES: a session with the TypeScript client 2.x, in the mode that $MODE names.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { allOf, tour } from "./typescript-tour.mjs";

const [verb, url, ...rest] = process.argv.slice(2);

async function connect({ elicit, sample, roots, log, updated }) {
  const capabilities = elicit ? { elicitation: {}, sampling: {}, roots: {} } : {};
  const options = { capabilities, versionNegotiation: { mode: process.env.MODE } };
  const client = new Client({ name: "typescript-2", version: "1" }, options);
  if (elicit) client.setRequestHandler("elicitation/create", elicit);
  if (sample) client.setRequestHandler("sampling/createMessage", sample);
  if (roots) client.setRequestHandler("roots/list", roots);
  if (log) client.setNotificationHandler("notifications/message", log);
  if (updated) client.setNotificationHandler("notifications/resources/updated", updated);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const call = (name, args, more) => client.callTool({ name, arguments: args }, more);
  return { client, transport, call };
}

if (verb === "tour") {
  console.log(JSON.stringify(await tour(connect, JSON.parse(rest[0]))));
} else {
  const { client, transport, call } = await connect({});
  const tools = (await allOf((page) => client.listTools(page), "tools")).map((listed) => listed.name);
  const result = await call(rest[0], JSON.parse(rest[1]));
  console.log(JSON.stringify({ protocol: transport.protocolVersion, tools, text: result.content[0].text }));
  await transport.terminateSession();
  await client.close();
}
