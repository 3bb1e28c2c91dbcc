import type { CountedRule } from './iptables-client.ts';

/** The rules in the output of `-S CHAIN -v`, in their order. */
export function parseListing(text: string, chain: string): readonly CountedRule[] {
  const head = `-A ${chain}`;
  return text.split('\n').flatMap((printed) => {
    const line = printed.trimEnd(); // 1.8.7 leaves a blank where a rule has no target
    if (line !== head && !line.startsWith(`${head} `)) return [];
    return [parseCounted(line.slice(head.length + 1))];
  });
}

/**
 * Counters stand before the target (`... -c 5 300 -j MARK ...`), or at the end where there is none. A comment may hold the
 * same: what is quoted is skipped.
 */
function parseCounted(text: string): CountedRule {
  for (const found of text.matchAll(/"(?:[^"\\]|\\.)*"|(?:^|(\s))-c (\d+) (\d+)(?=$| -[jg] )/g)) {
    const [all, before = '', packets, bytes] = found;
    if (packets === undefined) continue;
    const after = text.slice(found.index + all.length);
    const rule = before === '' ? after.slice(1) : text.slice(0, found.index) + after;
    return { rule, packets: Number(packets), bytes: Number(bytes) };
  }
  return { rule: text, packets: 0, bytes: 0 };
}
