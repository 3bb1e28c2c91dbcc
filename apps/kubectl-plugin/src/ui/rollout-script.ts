/**
 * The part of the page's program that draws rollouts: for each Service whose endpoints change, every endpoint as a lane over time, as
 * the nodes' kernels have it, and lost packets below. It uses `byId` and `escapeText` of the page.
 */
export const rolloutScript: string = `
const rollouts = new Map();
const kept = { rollouts: 4, points: 200, losses: 500, before: 5000, after: 15000, width: 300000 };
const lane = { height: 16, gap: 6, label: 230, right: 20, axis: 22 };

/** Notes a node's line of /debug/changes. */
function onChange({ time, node, service, ipFamily, endpoints, before }) {
  const key = service + ' ' + ipFamily, at = Date.parse(time);
  const rollout = rollouts.get(key) || { service, ipFamily, lanes: new Map(), nodes: new Set(), losses: [], first: at, last: 0 };
  rollouts.delete(key);
  rollouts.set(key, rollout); // the one that changed last is the last
  if (rollouts.size > kept.rollouts) rollouts.delete(rollouts.keys().next().value);
  rollout.nodes.add(node);
  if (!before) {
    if (rollout.last === 0) rollout.first = at;
    rollout.last = Math.max(rollout.last, at);
    rollout.first = Math.min(rollout.first, at);
  }
  const there = new Set();
  for (const { address, port, nodeName, usedBy, terminating } of endpoints) {
    const place = (address.includes(':') ? '[' + address + ']' : address) + ':' + port;
    there.add(place);
    const one = rollout.lanes.get(place) || { on: nodeName || '', byNode: new Map() };
    rollout.lanes.set(place, one);
    note(one, node, { at, before, state: usedBy.length === 0 ? 'known' : terminating ? 'ending' : 'used' });
  }
  for (const [place, one] of rollout.lanes) if (!there.has(place) && one.byNode.has(node)) note(one, node, { at, before, state: 'gone' });
  showRollouts();
}
function note({ byNode }, node, point) {
  const points = byNode.get(node) || [];
  if (points.length > 0 && points[points.length - 1].state === point.state) return;
  points.push(point);
  byNode.set(node, points.slice(-kept.points));
}
/** Notes a loss with the rollout that it belongs to. */
function onRolloutLoss({ time, service, services, frontend, cause, count, node }) {
  const family = frontend.startsWith('[') ? 'IPv6' : 'IPv4';
  for (const one of rollouts.values()) {
    if (one.ipFamily !== family || !(services || [service]).includes(one.service)) continue;
    one.losses = [...one.losses, { at: Date.parse(time), cause, count, node }].slice(-kept.losses);
    showRollouts();
  }
}

/** The longest time between the first and the last node at the same change. */
function spreadOf({ lanes, nodes }) {
  let spread = 0;
  for (const { byNode } of lanes.values()) {
    const lists = [...byNode.values()].map((points) => points.filter(({ before }) => !before));
    if (lists.length < nodes.size || lists.some(({ length }) => length !== lists[0].length)) continue;
    lists[0].forEach((_, index) => {
      const times = lists.map((points) => points[index].at);
      spread = Math.max(spread, Math.max(...times) - Math.min(...times));
    });
  }
  return spread;
}

const colours = { used: '#2e7d32', ending: '#ef6c00', known: '#8887', differ: '#6a1b9a' };
const words = { used: 'used by all nodes', ending: 'ending, still used by all nodes', known: 'not used', differ: 'nodes differ' };
/** Times at which any node changed the lane, each with what all nodes have from then on. */
function segmentsOf({ byNode }, nodes, end) {
  const times = [...new Set([...byNode.values()].flat().map(({ at }) => at))].sort((a, b) => a - b);
  return times.map((from, index) => {
    const states = new Set([...nodes].map((node) => {
      const points = (byNode.get(node) || []).filter(({ at }) => at <= from);
      return points.length === 0 ? 'gone' : points[points.length - 1].state;
    }));
    return { from, to: index + 1 < times.length ? times[index + 1] : end, state: states.size === 1 ? [...states][0] : 'differ', states: [...states] };
  }).filter(({ state }) => state !== 'gone');
}

function showRollouts() {
  const drawn = [...rollouts.values()].filter(({ last }) => last > 0).reverse();
  byId('rollouts').innerHTML = drawn.length === 0 ? '<p class="good">no endpoints changed since this page was opened</p>' : drawn.map(drawRollout).join('');
}
/** A rollout's picture stands still some time after the last event. */
function endOf({ last, losses }) { return Math.max(last, ...losses.map(({ at }) => at)) + kept.after; }
function isMoving(rollout) { return Date.now() < endOf(rollout) + 1000; }
function drawRollout(rollout) {
  const end = Math.min(Date.now(), endOf(rollout));
  const begin = Math.max(rollout.first - kept.before, end - kept.width);
  const wide = 1160, room = wide - lane.label - lane.right;
  const x = (at) => lane.label + Math.max(0, Math.min(1, (at - begin) / (end - begin))) * room;
  const lanes = [...rollout.lanes].map(([place, one]) => ({ place, one, segments: segmentsOf(one, rollout.nodes, end).filter(({ to }) => to > begin) }))
    .filter(({ segments }) => segments.length > 0);
  const bars = lanes.map(({ place, one, segments }, row) => {
    const y = lane.axis + row * (lane.height + lane.gap);
    return '<text x="0" y="' + (y + 13) + '">' + escapeText(place) + '<tspan style="opacity:.6"> ' + escapeText(one.on) + '</tspan></text>' + segments.map(({ from, to, state, states }) => {
      const wideness = Math.max(state === 'differ' ? 2 : 1, x(to) - x(from));
      const title = clockText(from) + ' to ' + clockText(to) + ': ' + (state === 'differ' ? 'nodes differ: ' + states.join(', ') : words[state]);
      return '<rect data-state="' + state + '" x="' + x(from).toFixed(1) + '" y="' + y + '" width="' + wideness.toFixed(1) + '" height="' + lane.height + '" fill="' + colours[state] + '"><title>' + title + '</title></rect>';
    }).join('');
  }).join('');
  const bottom = lane.axis + lanes.length * (lane.height + lane.gap);
  const lost = rollout.losses.filter(({ at }) => at >= begin);
  const marks = '<text x="0" y="' + (bottom + 13) + '">lost packets</text>' + lost.map(({ at, cause, count, node }) =>
    '<rect data-state="lost" x="' + x(at).toFixed(1) + '" y="' + bottom + '" width="3" height="' + lane.height + '" fill="#c62828"><title>' +
    escapeText(clockText(at) + ': ' + count + ' on ' + node + ', ' + cause) + '</title></rect>').join('');
  const packets = lost.reduce((sum, { count }) => sum + count, 0);
  const high = bottom + lane.height + lane.gap;
  return '<h3>' + escapeText(rollout.service) + ' <span class="dim">' + rollout.ipFamily + '</span></h3>' +
    '<p>last change ' + clockText(rollout.last) + ' on ' + rollout.nodes.size + ' nodes, at most ' + spreadOf(rollout) + ' ms apart; ' +
    '<span class="' + (packets ? 'bad' : 'good') + '">' + packets + ' packets lost</span></p>' +
    '<svg role="img" aria-label="endpoints of ' + escapeText(rollout.service) + ' over time" viewBox="0 0 ' + wide + ' ' + high + '" width="' + wide + '" height="' + high + '">' +
    axis(begin, end, x, high) + bars + marks + '</svg>';
}
function axis(begin, end, x, high) {
  const step = [1, 2, 5, 10, 30, 60].find((one) => (end - begin) / 1000 / one <= 10) * 1000;
  let text = '';
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    text += '<line x1="' + x(at) + '" x2="' + x(at) + '" y1="16" y2="' + high + '" stroke="#8883"/><text x="' + x(at) + '" y="11" text-anchor="middle" style="opacity:.6">' + clockText(at).slice(0, 8) + '</text>';
  }
  return text;
}
function clockText(at) {
  const time = new Date(at), two = (number) => String(number).padStart(2, '0');
  return two(time.getHours()) + ':' + two(time.getMinutes()) + ':' + two(time.getSeconds()) + '.' + String(time.getMilliseconds()).padStart(3, '0');
}
`;
