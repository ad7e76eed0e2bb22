package text

import (
	"strings"
	"unicode/utf8"
)

// Stop reports whether a term, in the form that Terms gives it, is a function
// word: an article, pronoun, preposition, auxiliary or the like, or a pair of
// characters that holds nothing else. Words that are content in another
// language that agents write (war, die, car, sin, pour) are left out.
func Stop(term string) bool {
	if _, ok := stopWords[term]; ok {
		return true
	}
	if len(term) >= 3 && term[0] >= 0xE3 {
		return stopCharacters(term)
	}
	return false
}

// stopCharacters reports one or two characters of Chinese or Japanese that
// carry no content by themselves.
func stopCharacters(term string) bool {
	n := 0
	for _, r := range term {
		if !strings.ContainsRune(stopHan, r) {
			return false
		}
		n++
	}
	return n <= 2
}

// stopHan are the particles, pronouns and auxiliaries of one character.
const stopHan = "的了着过是在和与及或也都就又还再才吗呢吧啊呀嘛把被让给对从向往于以为之其而且但若则所者这那哪此我你您他她它们谁很太更最有" +
	"请个些什么怎" +
	"はがをにでとものへやかねよぞさわ"

var stopWords = buildStopWords()

func buildStopWords() map[string]struct{} {
	lists := []string{
		stopEnglish, stopGerman, stopFrench, stopSpanish, stopTurkish, stopRussian,
		stopPersian, stopArabic, stopUrdu, stopHindi, stopHanWords, stopKana, stopKorean, stopThai,
	}
	n := 0
	for _, l := range lists {
		n += strings.Count(l, " ") + 1
	}
	m := make(map[string]struct{}, n)
	for _, l := range lists {
		for _, w := range strings.Fields(l) {
			w = strings.ReplaceAll(Normalize(w), "'", "")
			m[w] = struct{}{}
			// Hangul and Thai reach the index as pairs as well.
			if r, _ := utf8.DecodeRuneInString(w); classOf(r) == classHangul {
				rs := []rune(w)
				for i := 2; i < len(rs); i++ {
					m[string(rs[i-1:i+1])] = struct{}{}
				}
			}
		}
	}
	return m
}

const (
	stopEnglish = `a an the this that these those i me my mine myself we us our ours ourselves you your yours yourself
yourselves he him his himself she her hers herself it its itself they them their theirs themselves who whom whose which what
when where why how am is are was were be been being have has had having do does did doing done can could will would shall
should may might must ought cannot cant couldnt wont wouldnt shouldnt mustnt dont doesnt didnt isnt arent wasnt werent
hasnt havent hadnt im ive id youre youve hes shes theyre theyve weve thats theres whats lets not no nor and or but if
than then so too very as at by for from in into of off on onto out over to up with without within about above across after
again against along among around because before below between both during each either else ever every few further here
however just more most much neither now once only other others own per same since some such there therefore though through
thus under until upon via was while whether yet please also any all anything something everything nothing anyone someone
everyone get gets got let s t d ll re ve m ok okay hi hello hey thanks thank etc eg ie us`

	stopGerman = `der die das dem den des ein eine einer eines einem einen und oder aber ist sind wird werden wurde wurden
ich du er sie es wir ihr mich dich ihn uns euch mir dir ihm ihnen mein dein sein unser euer nicht kein keine keiner mit von
vom zu zum zur im am auf aus bei beim nach fuer für ueber über unter um an als wie wenn dass daß ob weil durch gegen ohne
zwischen auch noch nur schon sehr mehr wer wen wem wessen wo wann warum wieso welche welcher welches dieser diese dieses
diesem diesen jener haben hatte hatten kann können koennen soll sollen muss müssen darf dürfen werde bitte doch`

	stopFrench = `le la les un une du des de au aux et ou mais est sont était étaient être été as avons avez ont avait je
tu il elle nous vous ils elles me te se lui leur leurs moi toi mon ma mes ta tes sa ses notre nos votre vos ce cet cette ces
que qui quoi dont où quand comment pourquoi quel quelle quels quelles ne pas dans par avec sans sous chez vers entre en y à
aussi très si comme cela ça on fait peut l d j n qu c`

	stopSpanish = `el la los las un una unos unas lo de del al y e o u pero es son era eran fue fueron ser estar está están ha
han había yo tú él ella nosotros vosotros ellos ellas me te se le les nos os mi mis tu tus su sus nuestro nuestra que qué
quién quien quienes cuál cual cuándo cuando cómo como dónde donde porque no ni con en por para sobre entre hasta desde este
esta estos estas ese esa esos esas muy más también ya si sí`

	stopTurkish = `ve veya ama fakat ile için gibi kadar bir bu şu o ben sen biz siz onlar ne neden niçin nasıl nerede kim hangi
mi mı mu mü da de ki değil var yok çok daha en her olarak olan olduğu ise ya`

	stopRussian = `и в во не что он на я с со как а то все всё она так его но да ты к у же вы за бы по только ее её мне было вот от
меня еще ещё нет о об из ему теперь когда даже ну ли если уже или ни быть был была были него до вас нибудь вам ведь там потом
себя ничего ей может они тут где есть надо ней для мы тебя их чем сам чтоб чтобы без чего тоже себе под будет ж кто этот эта
эти это этого того потому этой какой какая какие который которая которые при над через про между нас нам`

	stopPersian = `و در به از که این آن را با است اند بود بودند شد شده می نمی های ها برای تا یا هم نیز هر اگر اما ولی من تو او ما
شما آنها ایشان چه چی کی کجا چرا چگونه کدام بر یک هست هستند نیست باشد باید خود دیگر همه بی روی پس پیش آیا`

	stopArabic = `في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم هن أنا أنت نحن أنتم كان كانت يكون ما ماذا لماذا متى
أين كيف كم أي أو ثم لا لم لن إن أن أنّ قد كل بعد قبل بين حتى إذا لو لكن غير عند لقد ليس ليست هل و ف ب ل ك`

	stopUrdu = `اور کا کی کے کو نے سے میں پر ہے ہیں ہو تھا تھی تھے یہ وہ کہ جو ہم تم آپ نہیں بھی تو ہی تک یا اگر لیکن کیا کون کہاں
کب کیوں کیسے اس ان اپنا اپنی اپنے گا گی گے رہا رہی رہے کر ایک`

	stopHindi = `और का की के को ने से में पर है हैं हो था थी थे यह वह ये वे कि जो हम तुम आप मैं नहीं भी तो ही तक या अगर लेकिन क्या
कौन कहाँ कब क्यों कैसे इस उस इन उन अपना अपनी अपने गा गी गे रहा रही रहे कर एक जाता जाती जाते`

	stopHanWords = `什么 怎么 怎样 为何 为什 我们 你们 他们 她们 它们 这个 那个 这些 那些 哪个 哪些 哪里 是否 可以 因为 所以 如果 但是 而且 或者 以及
一个 已经 没有 不是 就是 还是 的是 请问 如何`

	stopKana = `です ます した ない する して から まで より こと もの ため これ それ あれ この その あの どの どこ どれ ここ そこ ある いる れる られ なの のは
のが には では とは でも ので のに され ました ませ せん でし たい なら など だけ という いう ください くだ ださ さい なに 何 何が 何を だれ いつ`

	stopKorean = `은 는 이 가 을 를 의 에 와 과 도 로 으로 에서 에게 까지 부터 하다 합니다 입니다 있다 있습니다 없다 없습니다 이다 그리고 그러나
하지만 또는 그 저 이것 그것 저것 우리 나 너 당신 무엇 누구 어디 언제 왜 어떻게 어떤 것 수 등`

	stopThai = `ที่ และ หรือ ของ ใน เป็น มี ได้ ให้ กับ จาก ไป มา นี้ นั้น`
)
