// call URL TOOL ARGUMENTS, tour URL PREFIXES, or links, tasks, work or meet and URL and what they are to do: a session
// with the TypeScript SDK 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { allOf, tour } from "./typescript-tour.mjs";
import * as more from "./typescript-sdk-1-more.mjs";

const [verb, url, ...rest] = process.argv.slice(2);

async function connect({ elicit, sample, roots, log, updated }) {
  const capabilities = elicit ? { elicitation: {}, sampling: {}, roots: {} } : {};
  const client = new Client({ name: "typescript-1", version: "1" }, { capabilities });
  if (elicit) client.setRequestHandler(ElicitRequestSchema, elicit);
  if (sample) client.setRequestHandler(CreateMessageRequestSchema, sample);
  if (roots) client.setRequestHandler(ListRootsRequestSchema, roots);
  if (log) client.setNotificationHandler(LoggingMessageNotificationSchema, log);
  if (updated) client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
  return { client, transport, call };
}

if (verb === "tour") {
  console.log(JSON.stringify(await tour(connect, JSON.parse(rest[0]))));
} else if (verb in more) {
  console.log(JSON.stringify(await more[verb](url, JSON.parse(rest[0]))));
} else {
  const { client, transport, call } = await connect({});
  const tools = (await allOf((page) => client.listTools(page), "tools")).map((listed) => listed.name);
  const result = await call(rest[0], JSON.parse(rest[1]));
  console.log(JSON.stringify({ protocol: transport.protocolVersion, tools, text: result.content[0].text }));
  await transport.terminateSession();
  await client.close();
}
