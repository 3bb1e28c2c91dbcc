import type { CgroupHook } from './types.ts';

/** Numbers of the hooks of sockets in `enum bpf_attach_type`. */
export const cgroupAttachTypes: Readonly<Record<CgroupHook, number>> = {
  connect4: 10,
  connect6: 11,
  sendmsg4: 14,
  sendmsg6: 15,
  recvmsg4: 19,
  recvmsg6: 20,
  getpeername4: 29,
  getpeername6: 30,
};

/** Which packets of an interface a program of type tc sees. */
export type TcDirection = 'ingress' | 'egress';

/** Numbers of the hooks of interfaces in `enum bpf_attach_type`. */
export const tcxAttachTypes: Readonly<Record<TcDirection, number>> = { ingress: 46, egress: 47 };
