package view

import (
	"cmp"

	"github.com/mediagate/mediagate"
)

// languageEnglish is the language of the stored messages. In English the stored message is shown,
// which may say more than the failure's code. Once the stored message is erased, the text of its
// code in plain replaces it.
const languageEnglish = "en"

// Languages returns the languages that In accepts.
func Languages() []string { return []string{"zh", languageEnglish, "ko", "ja"} }

// message returns the failure's message in the language, or the stored message if there is none in
// that language.
func message(f mediagate.Failure, language string) string {
	if m, ok := messages[f.Code][language]; ok {
		return m
	}
	return f.Message
}

// failureOf returns the failure of a task, with a message even if the stored one was erased.
func failureOf(t *mediagate.Task) *mediagate.Failure {
	if t.Failure == nil {
		return nil
	}
	f := *t.Failure
	f.Message = cmp.Or(f.Message, plain[f.Code])
	return &f
}

// plain holds the texts of failures whose message was erased, by code.
var plain = map[mediagate.FailureCode]string{
	mediagate.CodeContentPolicy:     "the content did not pass the safety review",
	mediagate.CodeInvalidParameters: "the provider refused the parameters of the request",
	mediagate.CodeImageProcessing:   "a file of the request could not be processed",
	mediagate.CodeGenerationFailed:  "the generation failed",
	mediagate.CodeGenerationTimeout: "the generation took too long",
	mediagate.CodeProviderAway:      "the provider is not available",
	mediagate.CodeProviderRefused:   "the provider refused our account",
	mediagate.CodeSubmissionUnknown: "it is not known whether the provider has the task",
	mediagate.CodeResultUnavailable: "the result could not be fetched",
	mediagate.CodeModalExpired:      "no modal parameters came in time",
	mediagate.CodeSourceFailed:      "a task whose file this one needs ended without it",
	mediagate.CodeModelRetired:      "the provider no longer has the model",
	mediagate.CodeInternal:          "internal error",
}

// messages holds the texts of failures in languages other than English, by code and language.
var messages = map[mediagate.FailureCode]map[string]string{
	mediagate.CodeContentPolicy: {
		"zh": "内容未通过安全审核",
		"ko": "콘텐츠가 안전 정책을 위반했습니다",
		"ja": "コンテンツが安全ポリシーに違反しています",
	},
	mediagate.CodeInvalidParameters: {
		"zh": "请求参数无效",
		"ko": "요청 매개변수가 올바르지 않습니다",
		"ja": "リクエストのパラメータが正しくありません",
	},
	mediagate.CodeImageProcessing: {
		"zh": "无法处理输入图片",
		"ko": "입력 이미지를 처리할 수 없습니다",
		"ja": "入力画像を処理できませんでした",
	},
	mediagate.CodeGenerationFailed: {
		"zh": "生成失败",
		"ko": "생성에 실패했습니다",
		"ja": "生成に失敗しました",
	},
	mediagate.CodeGenerationTimeout: {
		"zh": "生成超时",
		"ko": "생성 시간이 초과되었습니다",
		"ja": "生成がタイムアウトしました",
	},
	mediagate.CodeProviderAway: {
		"zh": "服务提供方暂时不可用",
		"ko": "제공업체를 일시적으로 사용할 수 없습니다",
		"ja": "プロバイダーが一時的に利用できません",
	},
	mediagate.CodeProviderRefused: {
		"zh": "服务提供方拒绝了网关的凭证",
		"ko": "제공업체가 게이트웨이의 자격 증명을 거부했습니다",
		"ja": "プロバイダーがゲートウェイの認証情報を拒否しました",
	},
	mediagate.CodeSubmissionUnknown: {
		"zh": "无法确认任务是否已提交给服务提供方，费用已退还",
		"ko": "제공업체에 작업이 제출되었는지 확인할 수 없어 비용을 환불했습니다",
		"ja": "プロバイダーへの送信結果を確認できないため、料金を返金しました",
	},
	mediagate.CodeResultUnavailable: {
		"zh": "无法获取生成结果",
		"ko": "생성 결과를 가져올 수 없습니다",
		"ja": "生成結果を取得できませんでした",
	},
	mediagate.CodeModalExpired: {
		"zh": "等待补充参数超时",
		"ko": "추가 매개변수 입력 시간이 만료되었습니다",
		"ja": "追加パラメータの入力期限が切れました",
	},
	mediagate.CodeSourceFailed: {
		"zh": "所引用的任务未能提供需要的文件",
		"ko": "참조한 작업이 필요한 파일 없이 종료되었습니다",
		"ja": "参照元のタスクが必要なファイルを作らずに終了しました",
	},
	mediagate.CodeModelRetired: {
		"zh": "服务提供方已停止提供该模型",
		"ko": "제공업체가 더 이상 이 모델을 제공하지 않습니다",
		"ja": "プロバイダーはこのモデルの提供を終了しました",
	},
	mediagate.CodeInternal: {
		"zh": "内部错误",
		"ko": "내부 오류가 발생했습니다",
		"ja": "内部エラーが発生しました",
	},
}
