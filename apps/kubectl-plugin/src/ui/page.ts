import { rolloutScript } from './rollout-script.ts';

/**
 * The page of `kubectl switchyard ui`: one file, without anything from elsewhere. It reads `/api/status`, `/api/services` and the event stream
 * `/api/events`.
 */
export const page: string = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Switchyard: lost packets</title>
<style>
  :root { color-scheme: light dark; --line: #8884; --bad: #c62828; --good: #2e7d32; --dim: #888; }
  body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 1200px; padding: 0 1rem; }
  h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; } h3 { font-size: 1rem; margin: .8rem 0 0; }
  table { border-collapse: collapse; width: 100%; }
  th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
  th { font-weight: 600; color: var(--dim); }
  td.number, th.number { text-align: right; }
  .bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); } .dim { color: var(--dim); }
  tr.loss { cursor: pointer; } tr.loss:hover, tr.chosen { background: #8881; }
  svg { max-width: 100%; } svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
  p.advice { margin: .3rem 0; }
  .key i { display: inline-block; width: .9rem; height: .7rem; margin: 0 .3rem 0 .9rem; }
</style>
<h1>Switchyard: lost packets of Services</h1>
<p id="state" class="dim">connecting</p>
<h2>Nodes</h2>
<table id="nodes"></table>
<h2>Losses</h2>
<table id="losses"></table>
<div id="path"></div>
<h2>Rollouts</h2>
<p class="dim key">When each node's kernel had a change of endpoints; beside another proxy, when the node heard of it.<i style="background:#2e7d32"></i>used by all nodes<i style="background:#ef6c00"></i>ending, still
used<i style="background:#8887"></i>not used<i style="background:#6a1b9a"></i>nodes differ<i style="background:#c62828"></i>lost packets</p>
<div id="rollouts"></div>
<h2>Services and nodes</h2>
<p class="dim">Usable endpoints of each Service on each node, by policy Cluster and Local. Red: lost packets since this page was opened.</p>
<table id="services"></table>
<script>
const byId = (id) => document.getElementById(id);
const losses = new Map();
const lostAt = new Map();
let services = [], nodes = [], chosen, hasChanged = true, servicesAt = 0;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function row(cells, name = 'td') {
  const made = element('tr');
  for (const [text, className] of cells) made.append(element(name, text, className));
  return made;
}

function showNodes() {
  const head = [['node'], ['mode'], ['version'], ['family'], ['Services', 'number'], ['last apply'], ['failed'], ['connection tracking', 'number']];
  byId('nodes').replaceChildren(row(head, 'th'), ...nodes.flatMap((node) => node.families.map((family) => row([
    [node.node], [node.isObserver ? node.mode + ' (observer)' : node.mode], [node.version], [family.ipFamily], [family.services, 'number'],
    [family.lastApplied ? new Date(family.lastApplied).toLocaleTimeString() : 'never'],
    family.failure || family.failedServices ? [family.failure ? family.failure.text : family.failedServices + ' Services', 'bad'] : ['none', 'good'],
    [node.conntrack ? node.conntrack.entries + ' of ' + node.conntrack.limit : '', node.conntrack && node.conntrack.full ? 'number bad' : 'number'],
  ]))));
}

function showServices() {
  const names = nodes.map(({ node }) => node);
  const body = services.map(({ key, ipFamily, byNode }) => row([[key], [ipFamily, 'dim'], ...names.map((node) => {
    const here = byNode[node];
    const lost = lostAt.get(key + ' ' + node);
    if (here === undefined) return ['not there', 'bad'];
    const text = here.cluster + ' / ' + here.local + ' of ' + here.all + (lost ? ', ' + lost + ' lost' : '');
    return [text, lost || here.status !== 'applied' ? 'bad' : ''];
  })]));
  byId('services').replaceChildren(row([['Service'], ['family'], ...names.map((node) => [node])], 'th'), ...body);
}

function showLosses() {
  const rows = [...losses.values()].sort((a, b) => b.last.localeCompare(a.last)).slice(0, 200).map((loss) => {
    const made = row([
      [new Date(loss.last).toLocaleTimeString()], [loss.node], [loss.client || 'a socket'], [loss.service || ''], [loss.frontend],
      [loss.where.netns + (loss.where.hook ? ' ' + loss.where.hook : '')], [loss.count, 'number'], [loss.cause, 'bad'],
      [(loss.certainty === 'likely' ? 'likely: ' : '') + loss.why],
    ]);
    made.className = loss.key === chosen ? 'loss chosen' : 'loss';
    made.onclick = () => { chosen = loss.key; showLosses(); showPath(loss); };
    return made;
  });
  const head = [['time'], ['node'], ['from'], ['Service'], ['asked'], ['where'], ['packets', 'number'], ['cause'], ['why']];
  byId('losses').replaceChildren(row(head, 'th'), ...(rows.length ? rows : [row([['none since this page was opened', 'good']])]));
}

const stations = ['prerouting', 'input', 'forward', 'output', 'postrouting'];
/** The way of a packet through the node, with a cross where it was dropped. */
function showPath(loss) {
  const inPod = loss.where.netns === 'pod', atSocket = loss.where.netns === 'socket';
  const hook = loss.where.hook;
  const viaNode = hook === 'output' ? ['output', 'postrouting'] : hook === 'input' ? ['prerouting', 'input'] : ['prerouting', 'forward', 'postrouting'];
  const hops = [['client', loss.client || 'a socket'], ...viaNode.map((name) => [name, loss.node]), ['pod', inPod ? loss.frontend : 'endpoint']];
  const at = atSocket ? 0 : inPod ? hops.length - 1 : Math.max(1, hops.findIndex(([name]) => name === hook));
  const wide = 190, high = 96;
  const boxes = hops.map(([name, text], index) => {
    const x = 10 + index * wide, isLost = index === at, colour = isLost ? '#c62828' : index < at ? '#2e7d32' : '#888';
    const arrow = index === 0 ? '' : '<line x1="' + (x - 26) + '" y1="38" x2="' + (x - 4) + '" y2="38" stroke="' + (index <= at ? '#2e7d32' : '#8886') + '" stroke-width="2"/>';
    const cross = isLost ? '<text x="' + (x + 76) + '" y="88" style="fill:#c62828;font-size:20px">&#10007;</text>' : '';
    return arrow + '<rect x="' + x + '" y="14" width="160" height="50" rx="6" fill="none" stroke="' + colour + '" stroke-width="2"/>' +
      '<text x="' + (x + 10) + '" y="34">' + name + '</text><text x="' + (x + 10) + '" y="54" style="opacity:.7">' + escapeText(text) + '</text>' + cross;
  });
  byId('path').innerHTML = '<h2>The way of a packet</h2><svg role="img" aria-label="dropped at ' + hops[at][0] + '" viewBox="0 0 ' + (hops.length * wide) + ' ' + high + '" width="' +
    hops.length * wide + '" height="' + high + '">' + boxes.join('') + '</svg>';
  byId('path').append(element('p', (loss.direction === 'answer' ? 'The answer was lost. ' : '') + loss.why + ' [kernel: ' + loss.reason + ']'),
    element('p', 'Change: ' + loss.advice, 'advice'));
}
function escapeText(text) { return String(text).replace(/[&<>"]/g, (one) => '&#' + one.charCodeAt(0) + ';'); }

function onLoss(loss) {
  const key = [loss.node, loss.cause, loss.service, loss.frontend, loss.client, loss.direction, loss.where.netns, loss.where.hook, loss.why].join(' ');
  const before = losses.get(key);
  losses.set(key, { ...loss, key, last: loss.time, count: loss.count + (before ? before.count : 0) });
  if (losses.size > 1000) losses.delete(losses.keys().next().value);
  const place = loss.service + ' ' + loss.node;
  lostAt.set(place, (lostAt.get(place) || 0) + loss.count);
  showLosses();
  showServices();
  onRolloutLoss(loss);
}
${rolloutScript}
async function refresh() {
  try {
    const get = async (path) => (await fetch(path)).json();
    nodes = await get('/api/status');
    if (hasChanged || Date.now() - servicesAt > 60000) {
      hasChanged = false;
      services = await get('/api/services');
      servicesAt = Date.now();
    }
    byId('state').textContent = nodes.length + ' nodes, ' + services.length + ' Service ports; ' + new Date().toLocaleTimeString();
    showNodes();
    showServices();
  } catch (error) {
    byId('state').textContent = 'no answer: ' + error.message;
  }
}
const stream = new EventSource('/api/events');
stream.onmessage = ({ data }) => {
  const line = JSON.parse(data);
  if (line.cause) onLoss(line);
  if (line.endpoints) {
    hasChanged = true;
    onChange(line);
  }
};
showLosses();
showRollouts();
refresh();
setInterval(refresh, 5000);
setInterval(() => { if ([...rollouts.values()].some(isMoving)) showRollouts(); }, 1000);
</script>
</html>
`;
