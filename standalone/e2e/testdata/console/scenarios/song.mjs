// A song, which plays, and its tracks.
import {must} from '../browser.mjs'

export default async ({come, key}) => {
	const v = await come()
	await v.signIn(key)
	await v.go('/playground?model=music-a')
	await v.fill('textbox', 'Description', 'a song about a river [[sandbox: duration=1s]]')
	await v.press('button', 'Generate')
	await v.sees('Completed')
	const sound = await v.page.waitForSelector('audio')
	await sound.evaluate(a => a.play())
	await v.holds(a => a.currentTime > 0.2, sound)
	await v.page.waitForSelector('canvas.task-waveform') // the bucket lets the page read the sound
	await v.inspect('song')
	await v.press('link', 'Separate the tracks')
	await v.holds(() => location.search.includes('stemsAll'))
	await v.press('button', 'Generate')
	await v.sees('Download the tracks')
	const link = await v.page.evaluate(() => [...document.querySelectorAll('a')].find(a => a.innerText.startsWith('Download the tracks')).href)
	const file = await fetch(link)
	must(file.ok && (await file.arrayBuffer()).byteLength > 100, `the tracks: ${file.status}`)
	await v.leave()
}
