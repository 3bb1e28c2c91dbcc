/** `1 case`, `2 cases`. */
export function amountText(count: number, what: string): string {
  return `${count} ${count === 1 ? what : `${what}s`}`;
}
