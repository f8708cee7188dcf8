// URL: the client that the conformance suite looks at, around the TypeScript SDK 1.x. With $GATEWAY, a `moored` binary,
// it does not talk to the suite's server itself but through a gateway of its own in front of it.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const TARGET = process.argv.at(-1);

// What each scenario wants to see called.
const CALLS = {
  tools_call: ["add_numbers", { a: 5, b: 3 }],
  "elicitation-sep1034-client-defaults": ["test_client_elicitation_defaults", {}],
  "sse-retry": ["test_reconnection", {}],
};

const manifests = `
apiVersion: mooring.dev/v1alpha1
kind: MCPGateway
metadata: {name: tools}
spec: {auth: {anonymous: {}}, tools: {naming: Plain}}
---
apiVersion: mooring.dev/v1alpha1
kind: MCPTarget
metadata: {name: suite}
spec: {gatewayRefs: [{name: tools}], server: {type: URL, url: {address: ${JSON.stringify(TARGET)}}}}
`;

// Starts a gateway and gives its URL, and the way to end it.
async function gateway(binary) {
  const folder = await mkdtemp(join(tmpdir(), "mooring-suite-"));
  const file = join(folder, "manifests.yaml");
  await writeFile(file, manifests);
  const listen = ["--listen", "127.0.0.1:0", "--health-address", "127.0.0.1:0"];
  const moored = spawn(binary, ["serve", file, ...listen], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => moored.once("exit", resolve));
  const end = async () => {
    moored.kill();
    await ended;
    await rm(folder, { recursive: true });
  };
  for await (const line of createInterface({ input: moored.stdout })) {
    console.error(line);
    const entry = JSON.parse(line);
    const { message, address } = { ...entry.fields, ...entry };
    // What it says later matters to nobody, and must not fill the pipe.
    if (message === "listening") {
      moored.stdout.resume();
      return { url: `http://${address}/mcp`, end };
    }
  }
  throw new Error("the gateway did not start");
}

async function session(url) {
  const capabilities = { elicitation: { form: { applyDefaults: true } } };
  const client = new Client({ name: "conformance-client", version: "1" }, { capabilities });
  // The user takes what is offered: the SDK fills in the defaults.
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: {} }));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  await client.listTools();
  const call = CALLS[process.env.MCP_CONFORMANCE_SCENARIO];
  if (call) await client.callTool({ name: call[0], arguments: call[1] });
  await transport.terminateSession();
  await client.close();
}

const through = process.env.GATEWAY ? await gateway(process.env.GATEWAY) : { url: TARGET, end: async () => {} };
try {
  await session(through.url);
} finally {
  await through.end();
}
