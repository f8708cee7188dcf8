// Runs oauth2-mock-server as it is told: a command a line on stdin, an answer a line on stdout, both JSON.
import { createInterface } from "node:readline";
import { OAuth2Server } from "oauth2-mock-server";

const port = Number(process.env.PORT);
let server;

/** A provider at the same address with one key, which no provider before it had. */
async function start() {
  server = new OAuth2Server();
  await server.issuer.keys.generate("RS256");
  await server.start(port, "127.0.0.1");
  server.issuer.url = `http://127.0.0.1:${port}`;
  return {};
}

/** Signs a token with these claims besides the provider's own. */
async function sign({ claims, expiresIn }) {
  const own = (_, payload) => Object.assign(payload, claims);
  return { token: await server.issuer.buildToken({ scopesOrTransform: own, expiresIn }) };
}

async function stop() {
  await server.stop();
  return {};
}

const commands = { start, sign, stop };
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  console.log(JSON.stringify(await commands[command.do](command)));
}
