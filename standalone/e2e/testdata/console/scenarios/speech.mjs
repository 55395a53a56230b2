// Speech: an example with a click, a voice that is there from the start, and a sound that
// survives a reload, until the session ends. A sound of one's own as an input.
import {mkdtemp, rm, writeFile} from 'node:fs/promises'
import {tmpdir} from 'node:os'
import path from 'node:path'
import {must} from '../browser.mjs'

// wav is a second of silence.
function wav() {
	const bytes = Buffer.alloc(44 + 16_000)
	bytes.write('RIFF', 0); bytes.writeUInt32LE(36 + 16_000, 4); bytes.write('WAVEfmt ', 8)
	bytes.writeUInt32LE(16, 16); bytes.writeUInt16LE(1, 20); bytes.writeUInt16LE(1, 22); bytes.writeUInt32LE(8_000, 24)
	bytes.writeUInt32LE(16_000, 28); bytes.writeUInt16LE(2, 32); bytes.writeUInt16LE(16, 34); bytes.write('data', 36); bytes.writeUInt32LE(16_000, 40)
	return bytes
}

export default async ({come, key}) => {
	const v = await come()
	await v.signIn(key)
	await v.go('/playground?model=eta-4o-mini-tts')
	await v.click('.playground-examples button')
	await v.holds(() => document.querySelector('#root_input').value.length > 5)
	await v.press('button', 'Generate')
	await v.page.waitForSelector('audio')
	await v.inspect('speech')
	await v.page.reload()
	await v.page.waitForSelector('audio')
	await v.holds(() => document.querySelector('audio').duration > 0)
	await v.press('button', 'Sign out')
	await v.holds(() => location.pathname.endsWith('/sign-in'))
	must(!(await v.page.evaluate(() => JSON.stringify({...sessionStorage}))).includes('speeches'), 'the speech outlives its session')

	const folder = await mkdtemp(path.join(tmpdir(), 'sound-'))
	try {
		await writeFile(path.join(folder, 'silence.wav'), wav())
		await v.signIn(key)
		await v.go('/playground?model=delta-H3')
		const file = await v.page.waitForSelector('#root_audio_urls-file')
		await file.uploadFile(path.join(folder, 'silence.wav'))
		await v.holds(() => [...document.querySelectorAll('.playground-link')].some(l => l.innerText.includes('silence.wav')))
	} finally {
		await rm(folder, {recursive: true})
	}
	await v.leave()
}
