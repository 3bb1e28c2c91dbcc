/** A rule of `iptables-save -c` that packets matched in between, as `table chain  +packets  rule`. */
export function counterDifference(before: string, after: string): readonly string[] {
  const known = new Map(counters(before).map(({ key, packets }) => [key, packets]));
  return counters(after).flatMap(({ key, packets, text }) => {
    const more = packets - (known.get(key) ?? 0);
    return more > 0 ? [`${text}  +${more}`] : [];
  });
}

interface Counter {
  readonly key: string;
  readonly packets: number;
  readonly text: string;
}

function counters(save: string): readonly Counter[] {
  let table = '';
  const seen = new Map<string, number>();
  return save.split('\n').flatMap((line) => {
    if (line.startsWith('*')) table = line.slice(1).trim();
    const [, packets = '', chain = '', spec = ''] = /^\[(\d+):\d+\] -A (\S+) ?(.*)$/.exec(line) ?? [];
    if (chain === '') return [];
    const text = `${table}/${chain}  ${spec}`;
    // The same rule may stand in a chain twice.
    const nth = (seen.get(text) ?? 0) + 1;
    seen.set(text, nth);
    return [{ key: `${text} #${nth}`, packets: Number(packets), text }];
  });
}
