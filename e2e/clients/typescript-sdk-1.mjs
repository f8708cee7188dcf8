// URL TOOL ARGUMENTS: lists the tools and calls one with the TypeScript SDK 1.x.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, tool, args] = process.argv.slice(2);
const client = new Client({ name: "typescript-1", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const tools = [];
let cursor;
do {
  const page = await client.listTools({ cursor });
  tools.push(...page.tools.map((listed) => listed.name));
  cursor = page.nextCursor;
} while (cursor);
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ protocol: transport.protocolVersion, tools, text: result.content[0].text }));
await transport.terminateSession();
await client.close();
