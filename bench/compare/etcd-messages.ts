/**
 * The requests to etcd: a put of 100 bytes under one key, of which it keeps every version, as it would
 * of many keys; a linearizable range of that key. Messages of gRPC, made once.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Load } from '../load-process.ts'

const valueBytes = 100
export const key: Buffer = Buffer.from('bench')
export const what: string = `put of ${valueBytes} bytes, linearizable range of one key`

export const paths: Readonly<Record<Load['operation'], string>> = {
  commits: '/etcdserverpb.KV/Put',
  reads: '/etcdserverpb.KV/Range',
}

export const messages: Readonly<Record<Load['operation'], Buffer>> = {
  commits: framed(fields(key, Buffer.alloc(valueBytes, 'x'))),
  reads: framed(fields(key)),
}

/** A message of these bytes as its fields 1, 2, …; a put and a range begin with the key. */
function fields(...values: readonly Uint8Array[]): BinaryWriter {
  const writer = new BinaryWriter()
  for (const [place, value] of values.entries()) {
    writer.tag(place + 1, WireType.LengthDelimited).bytes(value)
  }
  return writer
}

/** A message of gRPC: not compressed, its length, itself. */
function framed(message: BinaryWriter): Buffer {
  const bytes = message.finish()
  const head = Buffer.alloc(5)
  head.writeUInt32BE(bytes.length, 1)
  return Buffer.concat([head, bytes])
}
