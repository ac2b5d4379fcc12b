/** `trilithon schema message`: a message of Protocol Buffers as text of a schema. */
import {
  createFileRegistry,
  fromBinary,
  type DescMessage,
  type FileRegistry,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { printProperties } from '../../schema/ddl-print.ts'
import { SchemaError } from '../../schema/problem.ts'
import { messageOf } from '../../schema/protobuf.ts'
import { unknownWord } from '../base/suggest.ts'
import { CliError, exitUsage } from './exit.ts'
import { readInputBytes } from './input-file.ts'
import { print } from './output.ts'

const hint = 'buf build -o FILE, or protoc --include_imports -o FILE, writes a file that has them'

export async function printMessage(file: string, name: string | undefined): Promise<void> {
  const messages = listMessages(await readRegistry(file))
  if (messages.length === 0) throw new CliError(`${file} has no messages: ${hint}`, exitUsage)
  if (name === undefined) {
    for (const { typeName } of messages) print(typeName)
    return
  }
  const message = messages.find(({ typeName }) => typeName === name)
  if (message === undefined) {
    const known = messages.map(({ typeName }) => typeName)
    throw new CliError(`${file}: ${unknownWord('message', name, known)}`, exitUsage)
  }
  process.stdout.write(printDescriptor(message))
}

async function readRegistry(file: string): Promise<FileRegistry> {
  const bytes = await readInputBytes(file)
  try {
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CliError(`${file} is no file of descriptors (${why}); ${hint}`, exitUsage)
  }
}

function listMessages(registry: FileRegistry): readonly DescMessage[] {
  return [...registry].filter((one) => one.kind === 'message')
}

function printDescriptor(message: DescMessage): string {
  try {
    const { type } = messageOf(message)
    return type.kind === 'message' ? printProperties(type.properties) : ''
  } catch (error) {
    if (error instanceof SchemaError) throw new CliError(error.message, exitUsage)
    throw error
  }
}
