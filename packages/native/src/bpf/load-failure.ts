import { NativeError } from '../native-error.ts';

/** The kernel, or libbpf, refused an object; `log` is what libbpf and the verifier said, last lines last. */
export class BpfLoadFailure extends NativeError {
  override readonly name: string = 'BpfLoadFailure';
  readonly log: string;

  constructor(attempt: string, failure: { readonly errno: number; readonly log: string }) {
    super(attempt, { errno: failure.errno, syscall: 'bpf' }, lastWords(failure.log));
    this.log = failure.log;
  }
}

/** The verifier's own words stand before its statistics and libbpf's summary; the whole log can have thousands of lines. */
function lastWords(log: string): string {
  const lines = log
    .split('\n')
    .filter((line) => line !== '' && !/^(libbpf: (?!extern)|processed |-- |verification )/.test(line));
  const said = (lines.length > 0 ? lines : log.split('\n').filter((line) => line !== '')).slice(-2);
  return said.length === 0 ? '' : `it said: ${said.join(' / ')}`;
}
