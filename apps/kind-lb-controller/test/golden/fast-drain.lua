-- Written by switchyard-lb at every change. Do not edit.
local groups = {
  { interval = 5000, wait = 5,
    announcing = { { "kind:default:web:80:ipv4", "kind:default:web:80:ipv4:last" }, { "kind:default:web:443:ipv4", "kind:default:web:443:ipv4:last" } }, targets = {
    { address = "172.18.0.11", port = 32080, path = "/healthz", servers = { { "kind:default:web:80:ipv4", "node1" }, { "kind:default:web:80:ipv4:last", "node1" } } },
    { address = "172.18.0.12", port = 32080, path = "/healthz", servers = { { "kind:default:web:80:ipv4", "node2" }, { "kind:default:web:80:ipv4:last", "node2" }, { "kind:default:web:443:ipv4", "node2" }, { "kind:default:web:443:ipv4:last", "node2" } } },
  } },
}
local header = "^x%-load%-balancing%-endpoint%-weight:%s*(%d+)"
-- Milliseconds between two looks at the servers' states.
local look_interval = 100

-- How many endpoints a target says it has; nil without a good answer.
local function ask(group, target)
  local word = target.word
  local socket = core.tcp()
  socket:settimeout(group.wait)
  local endpoints
  local announcement = word and "Switchyard-Load-Balancer: " .. word .. "\r\n" or ""
  target.said, target.is_heard = word, false
  if socket:connect(target.address, target.port) then
    socket:send("GET " .. target.path .. " HTTP/1.0\r\nConnection: close\r\n" .. announcement .. "\r\n")
    local line = socket:receive("*l")
    local is_healthy = line and line:match("^HTTP/1%.%d 200")
    target.is_heard = line and not (word == "left" and is_healthy)
    if is_healthy then
      endpoints = 1
      for _ = 1, 100 do
        line = socket:receive("*l")
        if not line or line == "" or line == "\r" then break end
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

-- Waits until there is something to ask or to say: after `again` for a word that was not heard.
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
