const cache: string[] = [];

/** The kernel keeps probabilities as multiples of this part. */
const one = 2 ** 31;

/**
 * One in `count`, as `iptables-save` prints what kube-proxy writes: kube-proxy gives ten digits, the kernel keeps a multiple of
 * 2^-31, and that is printed with eleven digits, which lead to the same multiple again.
 */
export function probabilityOf(count: number): string {
  return (cache[count] ??= printed(Math.round(Number((1 / count).toFixed(10)) * one)));
}

/** `multiple` / 2^31 with eleven digits; a tie goes to the even digit, as printf has it (1 in 4096 is one). */
function printed(multiple: number): string {
  const scaled = BigInt(multiple) * 10n ** 11n;
  const whole = BigInt(one);
  let digits = scaled / whole;
  const twice = (scaled % whole) * 2n;
  if (twice > whole || (twice === whole && digits % 2n === 1n)) digits += 1n;
  const text = digits.toString().padStart(12, '0');
  return `${text.slice(0, -11)}.${text.slice(-11)}`;
}
