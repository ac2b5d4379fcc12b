/** The load that clients put on a node, in figures. */
import type { Slices } from '../ports/slices.ts'
import type { ClientServer } from './client-server.ts'
import type { Figure } from './metrics.ts'

export function costFigures(
  server: Pick<ClientServer, 'requests' | 'heldBytes' | 'waitingBytes'>,
  slices: Pick<Slices, 'answerBytes' | 'steps'>,
): readonly Figure[] {
  return [
    {
      name: 'trilithon_client_requests',
      help: 'Requests over client links that are at work, polls that wait among them.',
      value: server.requests,
    },
    {
      name: 'trilithon_client_request_bytes',
      help: 'Bytes that these hold, with what they bring to be written.',
      value: server.heldBytes,
    },
    {
      name: 'trilithon_client_waiting_bytes',
      help: 'Bytes of requests that have come over client links and wait to be taken up.',
      value: server.waitingBytes,
    },
    {
      name: 'trilithon_client_steps',
      help: 'Reads and writes under way for requests of many parts.',
      value: slices.steps,
    },
    {
      name: 'trilithon_answer_bytes',
      help: 'Bytes of answers that are being made, or that clients have not taken yet.',
      value: slices.answerBytes,
    },
  ]
}
