/**
 * Client frames ⇄ bytes: `[format, 1, requests]`, `[format, 2, responses]` or `[format, 3, lists of nodes]`. The decoder checks bytes from
 * outside field by field: garbage is a reason, never an exception. Bodies stay packed, and are views of the
 * frame's bytes. A request that can be named, but not read, is answered with `invalid`, and the link stays:
 * there are others' requests on it. What a field means (is this text a UUID?) is for those who carry a
 * request out to say, so that the answer can tell.
 */
import { assert } from '../../base/assert.ts'
import { frameBytesMax } from '../../base/limits.ts'
import { pack, unpack } from '../../base/pack.ts'
import type { ClientFrame, MalformedRequest, Request } from './client-message.ts'
import { packRequest, readRequest } from './client-requests.ts'
import { packResponse, readResponse } from './client-responses.ts'
import { packSetList, readSetLists } from './nodes-codec.ts'
import { PackedRequests, unpackedFrameBytesMax } from './packed-requests.ts'
import * as field from '../fields.ts'

const frameFormat = 1
const kindRequests = 1
const kindResponses = 2
const kindNodes = 3

export type DecodedClientFrame =
  | { readonly ok: true; readonly frame: ClientFrame }
  | { readonly ok: false; readonly reason: string }

export function encodeClientFrame(frame: ClientFrame): Uint8Array {
  if (frame.kind === 'requests') {
    return pack([frameFormat, kindRequests, frame.requests.map(packRequest)])
  }
  if (frame.kind === 'nodes') return pack([frameFormat, kindNodes, frame.sets.map(packSetList)])
  assert(frame.kind === 'responses', 'wire: requests that came in are not sent on')
  return pack([frameFormat, kindResponses, frame.responses.map(packResponse)])
}

/** The start of a packed frame of requests: a list of three, its format and its kind. */
const requestsStart: readonly number[] = [0x93, frameFormat, kindRequests]

/** The same for a node, which takes requests up one by one: those of a large frame are unpacked then. */
export function openClientFrame(bytes: Uint8Array): DecodedClientFrame {
  if (bytes.length <= unpackedFrameBytesMax) return decodeClientFrame(bytes)
  if (bytes.length > frameBytesMax) return { ok: false, reason: 'the frame is too long' }
  const isOfRequests = requestsStart.every((byte, at) => bytes[at] === byte)
  if (!isOfRequests) return { ok: false, reason: 'a large frame is not of requests' }
  const requests = PackedRequests.open(bytes, requestsStart.length)
  if (typeof requests === 'string') return { ok: false, reason: requests }
  return { ok: true, frame: { kind: 'packed', requests } }
}

export function decodeClientFrame(bytes: Uint8Array): DecodedClientFrame {
  if (bytes.length > frameBytesMax) return { ok: false, reason: 'the frame is too long' }
  try {
    const [format, kind, messages] = field.list(unpack(bytes), 'frame', 3)
    if (format !== frameFormat) return { ok: false, reason: 'the frame is of no known format' }
    const list = field.list(messages, 'messages')
    if (kind === kindRequests) {
      return { ok: true, frame: readRequests(list) }
    }
    if (kind === kindResponses) {
      return { ok: true, frame: { kind: 'responses', responses: list.map(readResponse) } }
    }
    if (kind === kindNodes) return { ok: true, frame: { kind: 'nodes', sets: readSetLists(list) } }
    return { ok: false, reason: 'the frame is of no known kind' }
  } catch (error) {
    if (error instanceof field.MalformedError) return { ok: false, reason: error.message }
    throw error
  }
}

function readRequests(messages: readonly unknown[]): ClientFrame {
  const requests: Request[] = []
  const malformed: MalformedRequest[] = []
  for (const message of messages) {
    const read = readRequest(message)
    if ('reason' in read) malformed.push(read)
    else requests.push(read)
  }
  if (malformed.length === 0) return { kind: 'requests', requests }
  return { kind: 'requests', requests, malformed }
}
