// URL TOOL ARGUMENTS: lists the tools and calls one with the TypeScript client 2.x, in the mode that $MODE names.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, tool, args] = process.argv.slice(2);
const client = new Client({ name: "typescript-2", version: "1" }, { versionNegotiation: { mode: process.env.MODE } });
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
