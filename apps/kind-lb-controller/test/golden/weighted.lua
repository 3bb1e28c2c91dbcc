-- Written by switchyard-lb at every change. Do not edit.
local groups = {
  { interval = 5000, wait = 5, targets = {
    { address = "172.18.0.11", port = 10256, path = "/healthz", servers = { { "kind:default:web:80:ipv4", "node1" }, { "kind:default:web:443:ipv4", "node1" } } },
    { address = "172.18.0.12", port = 10256, path = "/healthz", servers = { { "kind:default:web:80:ipv4", "node2" }, { "kind:default:web:443:ipv4", "node2" } } },
  } },
  { interval = 5000, wait = 5, targets = {
    { address = "[fd00:172:18::11]", port = 10256, path = "/healthz", servers = { { "kind:default:web:80:ipv6", "node1" }, { "kind:default:web:443:ipv6", "node1" } } },
    { address = "[fd00:172:18::12]", port = 10256, path = "/healthz", servers = { { "kind:default:web:80:ipv6", "node2" }, { "kind:default:web:443:ipv6", "node2" } } },
  } },
}
local header = "^x%-load%-balancing%-endpoint%-weight:%s*(%d+)"

-- How many endpoints a target says it has; nil without a good answer.
local function ask(group, target)
  local socket = core.tcp()
  socket:settimeout(group.wait)
  local endpoints
  if socket:connect(target.address, target.port) then
    socket:send("GET " .. target.path .. " HTTP/1.0\r\nConnection: close\r\n\r\n")
    local line = socket:receive("*l")
    if line and line:match("^HTTP/1%.%d 200") then
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
