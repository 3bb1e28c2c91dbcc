import {
  type IpAddress,
  ipFamilyOf,
  type Port,
  type Protocol,
  type SourceClass,
  sourceClasses,
  tryParseIp,
  tryParsePort,
  tryParseProtocol,
} from '@switchyard/core';

/** Query of `/debug/explain`. */
export interface ExplainQuery {
  readonly from: IpAddress;
  readonly to: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  /** As given; undefined: derived from the address. */
  readonly source: SourceClass | undefined;
  /** As given; undefined: true for pods and the node. Only for the ebpf mode. */
  readonly isSentHere: boolean | undefined;
  readonly format: 'text' | 'json' | undefined;
}

/** The query, or its fault. */
export type ParsedExplainQuery =
  | { readonly status: 'ok'; readonly query: ExplainQuery }
  | { readonly status: 'bad'; readonly why: string };

/** Usage of `/debug/explain`. */
export const explainUsage: string = [
  'usage: /debug/explain?from=ADDRESS&to=ADDRESS:PORT[/PROTOCOL][&source=pod|node|outside][&sent=here|elsewhere][&format=text|json]',
  '  from    address of the sender, such as 10.244.1.7',
  '  to      destination, such as 10.96.0.10:80/TCP or [fd00:10:96::10]:53/UDP; default: TCP',
  '  source  class of the sender; default: derived from its address',
  '  sent    whether a socket of this node sends; default: yes for pods and the node (ebpf mode only)',
  '',
].join('\n');

const names: ReadonlySet<string> = new Set(['from', 'to', 'source', 'sent', 'format']);

/** Reads the parameters; each at most once, and no other. */
export function parseExplainQuery(parameters: URLSearchParams): ParsedExplainQuery {
  for (const name of parameters.keys()) {
    if (!names.has(name)) return bad(`unknown parameter ${JSON.stringify(name)}`);
    if (parameters.getAll(name).length > 1) return bad(`${name} is given more than once`);
  }
  const [fromText, toText] = [parameters.get('from'), parameters.get('to')];
  if (fromText === null) return bad('from is missing');
  if (toText === null) return bad('to is missing');
  const from = tryParseIp(fromText.replace(/^\[(.*)\]$/, '$1')); // as `to` needs it
  if (from === undefined) return bad(`from ${JSON.stringify(fromText)} is not an IP address`);
  const target = parseTarget(toText);
  if (target === undefined) return bad(`to ${JSON.stringify(toText)} is not ADDRESS:PORT/PROTOCOL`);
  if (ipFamilyOf(from) !== ipFamilyOf(target.to)) return bad(`${from} and ${target.to} are of different IP families`);
  const source = parameters.get('source') ?? undefined;
  if (source !== undefined && !isSourceClass(source))
    return bad(`source ${JSON.stringify(source)} is not a source class`);
  const sent = parameters.get('sent') ?? undefined;
  if (sent !== undefined && sent !== 'here' && sent !== 'elsewhere') {
    return bad(`sent ${JSON.stringify(sent)} is neither here nor elsewhere`);
  }
  const isSentHere = sent === undefined ? undefined : sent === 'here';
  const format = parameters.get('format') ?? undefined;
  if (format !== undefined && format !== 'text' && format !== 'json') {
    return bad(`format ${JSON.stringify(format)} is neither text nor json`);
  }
  return { status: 'ok', query: { from, ...target, source, isSentHere, format } };
}

function parseTarget(text: string): Pick<ExplainQuery, 'to' | 'port' | 'protocol'> | undefined {
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<ipv4>[^:]+)):(?<port>\d{1,5})(?:\/(?<protocol>\w+))?$/.exec(text);
  const groups = match?.groups ?? {};
  const to = tryParseIp(groups['ipv6'] ?? groups['ipv4'] ?? '');
  const port = tryParsePort(Number(groups['port']));
  const protocol = tryParseProtocol((groups['protocol'] ?? 'TCP').toUpperCase());
  return to === undefined || port === undefined || protocol === undefined ? undefined : { to, port, protocol };
}

function isSourceClass(text: string): text is SourceClass {
  return sourceClasses.some((one) => one === text);
}

function bad(why: string): ParsedExplainQuery {
  return { status: 'bad', why };
}
