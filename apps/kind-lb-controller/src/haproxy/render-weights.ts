import { createHash } from 'node:crypto';
import { addressAndPort, ipFamilyOf, millis, type Millis, seconds } from '@switchyard/core';
import type { HaproxyBackend } from './haproxy-servers.ts';

/** A Lua program that HAProxy runs beside its traffic. */
export interface WeightsProgram {
  /** Absolute path, with a hash of the text in it: a configuration names the program it was made with. */
  readonly path: string;
  readonly text: string;
}

/** Longest wait for an answer. */
const longestWait: Millis = seconds(5);

/**
 * The program that weighs servers by the `X-Load-Balancing-Endpoint-Weight` header of their health checks, which HAProxy's own
 * checks cannot read; undefined if nothing is weighed. It asks every distinct check of a weighted load balancer once per interval of
 * its profile, and gives the answer to all servers with that check. Weights are in proportion, 1 to 256: a server that is UP never gets
 * none. No header, or 0, is 1; no answer leaves the weight as it is, since whether the server is used is for HAProxy's checks.
 */
export function renderWeights(backends: readonly HaproxyBackend[], pathPrefix: string): WeightsProgram | undefined {
  const weighted = backends.filter(({ spec, use }) => spec.isWeighted && use.kind === 'port');
  if (weighted.length === 0) return undefined;
  const groups = Map.groupBy(weighted, ({ spec, ipFamily }) => `${spec.id.cluster} ${spec.id.service} ${ipFamily}`);
  const text = `${program[0]}${[...groups.values()].map(groupText).join('')}${program[1]}`;
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 12);
  return { path: `${pathPrefix}${hash}.lua`, text };
}

/** One Lua table: what is weighed against each other. */
function groupText(backends: readonly HaproxyBackend[]): string {
  const interval = backends[0]?.spec.profile.interval ?? longestWait;
  const servers = backends.flatMap((backend) => backend.servers);
  const byCheck = Map.groupBy(servers, ({ check }) => `${addressAndPort(check.address, check.port)} ${check.path}`);
  const targets = [...byCheck].map(([, those]) => {
    const [{ check } = { check: undefined }] = those;
    if (check === undefined) return '';
    const address = ipFamilyOf(check.address) === 'IPv4' ? check.address : `[${check.address}]`;
    const list = those.map(({ backend, name }) => `{ ${quoted(backend)}, ${quoted(name)} }`).join(', ');
    return `    { address = ${quoted(address)}, port = ${check.port}, path = ${quoted(check.path)}, servers = { ${list} } },\n`;
  });
  const wait = millis(Math.min(Math.max(interval, 1000), longestWait));
  return `  { interval = ${Math.max(1, Math.round(interval))}, wait = ${Math.ceil(wait / 1000)}, targets = {\n${targets.join('')}  } },\n`;
}

/** A Lua string: JSON's escapes of what names and paths can have are Lua's. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

const program: readonly [string, string] = [
  `-- Written by switchyard-lb at every change. Do not edit.
local groups = {
`,
  `}
local header = "^x%-load%-balancing%-endpoint%-weight:%s*(%d+)"

-- How many endpoints a target says it has; nil without a good answer.
local function ask(group, target)
  local socket = core.tcp()
  socket:settimeout(group.wait)
  local endpoints
  if socket:connect(target.address, target.port) then
    socket:send("GET " .. target.path .. " HTTP/1.0\\r\\nConnection: close\\r\\n\\r\\n")
    local line = socket:receive("*l")
    if line and line:match("^HTTP/1%.%d 200") then
      endpoints = 1
      for _ = 1, 100 do
        line = socket:receive("*l")
        if not line or line == "" or line == "\\r" then break end
        endpoints = tonumber(line:lower():match(header)) or endpoints
      end
    end
  end
  socket:close()
  return endpoints
end

local function weigh(group)
  local most = 1
  for _, target in ipairs(group.targets) do most = math.max(most, target.endpoints or 1) end
  for _, target in ipairs(group.targets) do
    local weight = math.max(1, target.endpoints or 1)
    if most > 256 then weight = math.max(1, math.floor(weight * 256 / most + 0.5)) end
    if target.endpoints and target.weight ~= weight then
      for _, one in ipairs(target.servers) do core.backends[one[1]].servers[one[2]]:set_weight(tostring(weight)) end
      target.weight = weight
    end
  end
end

for _, group in ipairs(groups) do
  for _, target in ipairs(group.targets) do
    core.register_task(function()
      while true do
        local isAsked, answer = pcall(ask, group, target)
        if isAsked and answer and answer ~= target.endpoints then
          target.endpoints = answer
          weigh(group)
        end
        core.msleep(group.interval)
      end
    end)
  end
end
`,
];
