import type { AddressInfo } from "node:net";
import Koa from "koa";
import { Pool } from "undici";

/** The anchor: the same framework and HTTP client as the gateway, and no governance at all. */
const pool = new Pool(new URL(process.argv[2] as string).origin, { connections: 64, bodyTimeout: 0 });
const app = new Koa();

app.use(async (ctx) => {
  ctx.respond = false;
  await pool.stream(
    { method: "POST", path: ctx.url, body: ctx.req, headers: { "content-type": "application/json" } },
    ({ statusCode, headers }) => {
      ctx.res.writeHead(statusCode, headers as Record<string, string>);
      return ctx.res;
    },
  );
});

const server = app.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ ready: true, port: (server.address() as AddressInfo).port })}\n`);
});
