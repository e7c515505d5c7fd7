import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { checkMark } from "../../../../core/cli/doctor/mark.ts";

describe("checkMark(target)", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "doctor-mark-"));
    await mkdir(join(folder, "data"));
  });

  afterEach(() => rm(folder, { recursive: true }));

  async function check(mark: string | null, enabled = true): Promise<string> {
    const path = mark === null ? null : join(folder, mark);
    const config = { dataDir: join(folder, "data"), state: { enabled, mark: path } };
    const [finding] = await checkMark({ config } as Parameters<typeof checkMark>[0]);
    return `${finding?.status}: ${finding?.text.replaceAll(folder, "")}`;
  }

  it("warns where there is none", async () => {
    expect(await check(null)).to.match(/^warn: none is configured/);
    expect(await check(null, false)).to.match(/^ok/);
  });

  it("warns where it is lost, and not before there is state", async () => {
    expect(await check("gateway.mark")).to.equal("ok: `/gateway.mark` is created with the state");
    await mkdir(join(folder, "data", "state"));
    expect(await check("gateway.mark")).to.equal("warn: `/gateway.mark` is missing");
    await writeFile(join(folder, "gateway.mark"), "");
    expect(await check("gateway.mark")).to.equal("ok: `/gateway.mark` is outside the data folder");
  });

  it("fails where it is no file", async () => {
    await mkdir(join(folder, "gateway.mark"));
    expect(await check("gateway.mark")).to.equal("fail: `/gateway.mark` is no regular file");
  });

  it("fails where it lies in the data folder, through a link too, or its folder is none", async () => {
    await symlink(join(folder, "data"), join(folder, "link"));
    await writeFile(join(folder, "data", "inside"), "");
    await symlink(join("data", "inside"), join(folder, "gateway.mark"));
    for (const path of ["data/gateway.mark", "link/gateway.mark", "gateway.mark"]) {
      expect(await check(path)).to.match(/^fail: .*is in the data folder/);
    }
    expect(await check("none/gateway.mark")).to.match(/^fail: .*cannot be written/);
  });
});
