import { requireMethods, objectArgument, requireText } from './argument.ts';
import type { NodeName } from '../model/records/keys.ts';

/** Structured fields of one log line. Values must be JSON-serialisable; errors are allowed. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Constant message plus fields. error: a person must act; warn: degraded, will retry, logged on
 * transition; info: state changes of the agent; debug: per service; trace: transactions.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  trace(message: string, fields?: LogFields): void;
}

const ignore = (): void => undefined;

/** Discards everything. */
export const noopLogger: Logger = { error: ignore, warn: ignore, info: ignore, debug: ignore, trace: ignore };

/** Returns a logger that adds these fields to each line; the line's own fields of the same name win. Throws `UsageError` for what is no logger. */
export function withFields(log: Logger, fixed: LogFields): Logger {
  requireMethods('withFields: log', log, ['error', 'warn', 'info', 'debug', 'trace']);
  return {
    error: (message, fields) => log.error(message, { ...fixed, ...fields }),
    warn: (message, fields) => log.warn(message, { ...fixed, ...fields }),
    info: (message, fields) => log.info(message, { ...fixed, ...fields }),
    debug: (message, fields) => log.debug(message, { ...fixed, ...fields }),
    trace: (message, fields) => log.trace(message, { ...fixed, ...fields }),
  };
}

/** Subject of an event. */
export interface EventSubject {
  /** Default: `v1`. */
  readonly apiVersion?: string;
  /** Such as `Node`, `Service`, `Lease`. */
  readonly kind: string;
  /** Empty for cluster-scoped objects, such as a Node. */
  readonly namespace: string;
  readonly name: string;
  /** Empty when it is not known. */
  readonly uid: string;
}

/** Returns a Node as the subject of an event. Throws `UsageError` for a name that is no text. */
export function nodeSubject(nodeName: NodeName): EventSubject {
  requireText('nodeSubject: nodeName', nodeName);
  return { kind: 'Node', namespace: '', name: nodeName, uid: '' };
}

/** Returns a Service as the subject of an event. Throws `UsageError` for names that are no texts. */
export function serviceSubject(service: Pick<EventSubject, 'namespace' | 'name'>): EventSubject {
  const { namespace, name } = objectArgument('serviceSubject: service', service);
  requireText('serviceSubject: service.namespace', namespace);
  requireText('serviceSubject: service.name', name);
  return { kind: 'Service', namespace, name, uid: '' };
}

/** One event of the Kubernetes API (events.k8s.io/v1). */
export interface RecordedEvent {
  readonly type: 'Normal' | 'Warning';
  /** CamelCase and constant, such as `FailedToStartServiceHealthcheck`; users filter by it. */
  readonly reason: string;
  /** Action of the reporter, CamelCase and constant, such as `StartServiceHealthcheck`. */
  readonly action: string;
  readonly regarding: EventSubject;
  /** Text for users; cut at 1,024 characters. */
  readonly note: string;
}

/** Receiver of events. Never blocks, never throws: an event that cannot be delivered becomes a log line. */
export interface EventRecorder {
  record(event: RecordedEvent): void;
}

/** Discards everything. */
export const noopEvents: EventRecorder = { record: () => undefined };

/** Returns a recorder that writes events to the log, for use without an API server. Throws `UsageError` for what is no logger. */
export function logEvents(logger: Logger): EventRecorder {
  requireMethods('logEvents: logger', logger, ['info', 'warn']);
  return {
    record: ({ type, reason, action, regarding, note }) => {
      const { kind, namespace, name } = regarding;
      const subject = namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
      logger[type === 'Warning' ? 'warn' : 'info']('event', { reason, action, regarding: subject, note });
    },
  };
}
