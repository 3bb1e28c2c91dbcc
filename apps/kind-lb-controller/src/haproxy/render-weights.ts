import { createHash } from 'node:crypto';
import { addressAndPort, ipFamilyOf, millis, type Millis, seconds } from '@switchyard/core';
import { needsKernel } from '../spec/kernel-ports.ts';
import type { HaproxyBackend } from './haproxy-servers.ts';

/** A Lua program that HAProxy runs beside its traffic. */
export interface WeightsProgram {
  /** Absolute path, with a hash of the text in it: a configuration names the program it was made with. */
  readonly path: string;
  readonly text: string;
}

/** Longest wait for an answer, and longest pause between two questions: nodes forget an announcement after 15 s. */
const longestPause: Millis = seconds(5);

/**
 * The program that weighs servers by the `X-Load-Balancing-Endpoint-Weight` header of their health checks, which HAProxy's own
 * checks cannot read; undefined if nothing is weighed. It asks every distinct check of a weighted load balancer once per interval of
 * its profile, at least every 5 s, and gives the answer to all servers with that check. Weights are in proportion, 1 to 256: a server that
 * is UP never gets none. No header, or 0, is 1; no answer leaves the weight as it is, since whether the server is used is for HAProxy's checks.
 *
 * The questions also announce whether the load balancer uses the node, for the drain gate: `left` if new connections never go there, in
 * any port. A change is announced within 0.1 s, and `left` is repeated until the node's answer was not healthy. A load balancer with ports
 * in the kernel announces nothing, because HAProxy does not know where their packets go; nor does a worker that is stopping.
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
  const spec = backends[0]?.spec;
  const interval = Math.min(spec?.profile.interval ?? longestPause, longestPause);
  const servers = backends.flatMap((backend) => backend.servers);
  const byCheck = Map.groupBy(servers, ({ check }) => `${addressAndPort(check.address, check.port)} ${check.path}`);
  const targets = [...byCheck].map(([, those]) => {
    const [{ check } = { check: undefined }] = those;
    if (check === undefined) return '';
    const address = ipFamilyOf(check.address) === 'IPv4' ? check.address : `[${check.address}]`;
    const weighed = those.filter(({ draining }) => draining !== 'empty'); // those have weight 0
    const list = weighed.map(({ backend, name }) => `{ ${quoted(backend)}, ${quoted(name)} }`).join(', ');
    return `    { address = ${quoted(address)}, port = ${check.port}, path = ${quoted(check.path)}, servers = { ${list} } },\n`;
  });
  const wait = millis(Math.max(interval, 1000));
  const announcing = spec === undefined || needsKernel(spec) ? [] : portsOf(backends);
  return [
    `  { interval = ${Math.max(1, Math.round(interval))}, wait = ${Math.ceil(wait / 1000)},\n`,
    `    announcing = { ${announcing.join(', ')} }, targets = {\n${targets.join('')}  } },\n`,
  ].join('');
}

/** A Lua table per port: its backend, and the second one that is used while the first has no server UP. */
function portsOf(backends: readonly HaproxyBackend[]): readonly string[] {
  const names = new Set(backends.map(({ name }) => name));
  return backends
    .filter(({ isLast }) => !isLast)
    .map(({ name }) => [name, `${name}:last`].filter((one) => names.has(one)).map(quoted))
    .map((pair) => `{ ${pair.join(', ')} }`);
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
-- Milliseconds between two looks at the servers' states.
local look_interval = 100

-- How many endpoints a target says it has; nil without a good answer.
local function ask(group, target)
  local word = target.word
  local socket = core.tcp()
  socket:settimeout(group.wait)
  local endpoints
  local announcement = word and "Switchyard-Load-Balancer: " .. word .. "\\r\\n" or ""
  target.said, target.is_heard = word, false
  if socket:connect(target.address, target.port) then
    socket:send("GET " .. target.path .. " HTTP/1.0\\r\\nConnection: close\\r\\n" .. announcement .. "\\r\\n")
    local line = socket:receive("*l")
    local is_healthy = line and line:match("^HTTP/1%.%d 200")
    target.is_heard = line and not (word == "left" and is_healthy)
    if is_healthy then
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

-- An old worker during a reload: it takes no new connections, and does not know where those of the new one go.
local function is_stopping()
  return core.get_info().Stopping == 1
end

-- Notes the servers of a backend that new connections go to: those that are UP, or the backups if these are the only ones.
local function note_used(backend, used)
  local active, backup = {}, {}
  for name, server in pairs(core.backends[backend].servers) do
    local stats = server:get_stats()
    if stats.weight > 0 and (stats.status:find("^UP") or stats.status == "no check") then
      table.insert(stats.bck == 1 and backup or active, backend .. "/" .. name)
    end
  end
  local names = #active > 0 and active or backup
  for _, name in ipairs(names) do used[name] = true end
  return #names > 0
end

local function look(group)
  local used = {}
  for _, port in ipairs(group.announcing) do
    if not note_used(port[1], used) and port[2] then note_used(port[2], used) end
  end
  for _, target in ipairs(group.targets) do
    target.word = "left"
    for _, one in ipairs(target.servers) do
      if used[one[1] .. "/" .. one[2]] then target.word = "uses" end
    end
  end
end

-- Waits until there is something to ask or to say: after \`again\` for a word that was not heard.
local function pause(group, target, again)
  if #group.announcing == 0 then return core.msleep(group.interval) end
  local waited = 0
  repeat
    core.msleep(look_interval)
    waited = waited + look_interval
  until target.word ~= target.said or waited >= (target.is_heard and group.interval or again)
end

for _, group in ipairs(groups) do
  if #group.announcing > 0 then
    core.register_task(function()
      repeat
        core.msleep(look_interval)
        look(group)
      until is_stopping()
    end)
  end
  for _, target in ipairs(group.targets) do
    core.register_task(function()
      local again = look_interval
      repeat
        local is_asked, answer = pcall(ask, group, target)
        if is_asked and answer and answer ~= target.endpoints then
          target.endpoints = answer
          weigh(group)
        end
        again = target.is_heard and look_interval or math.min(2 * again, 1000)
        pause(group, target, again)
      until is_stopping()
    end)
  end
end
`,
];
