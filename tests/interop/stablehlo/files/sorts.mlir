"builtin.module"() <{sym_name = "jit_sorts"}> ({
  "func.func"() <{function_type = (tensor<5x7xf64>, tensor<5x7xi64>) -> (tensor<5x7xf64>, tensor<5x7xf64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xf64>, tensor<7xi64>, tensor<5xf64>, tensor<5x7xi64>, tensor<5xf64>), res_attrs = [{jax.result_info = "result[0]"}, {jax.result_info = "result[1]"}, {jax.result_info = "result[2]"}, {jax.result_info = "result[3]"}, {jax.result_info = "result[4]"}, {jax.result_info = "result[5][0]"}, {jax.result_info = "result[5][1]"}, {jax.result_info = "result[6]"}, {jax.result_info = "result[7]"}, {jax.result_info = "result[8]"}, {jax.result_info = "result[9]"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg48: tensor<5x7xf64>, %arg49: tensor<5x7xi64>):
    %161 = "stablehlo.constant"() <{value = dense<3.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %162 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %163 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %164 = "stablehlo.constant"() <{value = dense<2> : tensor<i32>}> : () -> tensor<i32>
    %165 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %166 = "stablehlo.broadcast_in_dim"(%165) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %167 = "stablehlo.broadcast_in_dim"(%164) <{broadcast_dimensions = array<i64>}> : (tensor<i32>) -> tensor<1xi32>
    %168 = "stablehlo.concatenate"(%166, %167) <{dimension = 0 : i64}> : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %169 = "stablehlo.scatter"(%arg48, %168, %163) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1]>, unique_indices = true}> ({
    ^bb0(%arg54: tensor<f64>, %arg55: tensor<f64>):
      "stablehlo.return"(%arg55) : (tensor<f64>) -> ()
    }) : (tensor<5x7xf64>, tensor<2xi32>, tensor<f64>) -> tensor<5x7xf64>
    %170 = "func.call"(%arg48) <{callee = @sort}> : (tensor<5x7xf64>) -> tensor<5x7xf64>
    %171 = "func.call"(%169) <{callee = @sort_0}> : (tensor<5x7xf64>) -> tensor<5x7xf64>
    %172 = "func.call"(%arg48) <{callee = @argsort}> : (tensor<5x7xf64>) -> tensor<5x7xi64>
    %173 = "stablehlo.negate"(%arg49) : (tensor<5x7xi64>) -> tensor<5x7xi64>
    %174 = "func.call"(%173) <{callee = @argsort_1}> : (tensor<5x7xi64>) -> tensor<5x7xi64>
    %175 = "func.call"(%arg49) <{callee = @sort_2}> : (tensor<5x7xi64>) -> tensor<5x7xi64>
    %176:2 = "stablehlo.sort"(%arg49, %arg48) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg50: tensor<i64>, %arg51: tensor<i64>, %arg52: tensor<f64>, %arg53: tensor<f64>):
      %185 = "stablehlo.compare"(%arg52, %162) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %186 = "stablehlo.select"(%185, %162, %arg52) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %187 = "stablehlo.compare"(%arg52, %arg52) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %188 = "stablehlo.select"(%187, %163, %186) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %189 = "stablehlo.compare"(%arg53, %162) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %190 = "stablehlo.select"(%189, %162, %arg53) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %191 = "stablehlo.compare"(%arg53, %arg53) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %192 = "stablehlo.select"(%191, %163, %190) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %193 = "stablehlo.compare"(%188, %192) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %194 = "stablehlo.compare"(%arg50, %arg51) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %195 = "stablehlo.compare"(%arg50, %arg51) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %196 = "stablehlo.and"(%195, %193) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %197 = "stablehlo.or"(%194, %196) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%197) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi64>, tensor<5x7xf64>) -> (tensor<5x7xi64>, tensor<5x7xf64>)
    %177 = "stablehlo.slice"(%arg48) <{limit_indices = array<i64: 1, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xf64>) -> tensor<1x7xf64>
    %178 = "stablehlo.reshape"(%177) : (tensor<1x7xf64>) -> tensor<7xf64>
    %179 = "stablehlo.slice"(%arg49) <{limit_indices = array<i64: 1, 7>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<5x7xi64>) -> tensor<1x7xi64>
    %180 = "stablehlo.reshape"(%179) : (tensor<1x7xi64>) -> tensor<7xi64>
    %181 = "func.call"(%178, %180) <{callee = @lexsort}> : (tensor<7xf64>, tensor<7xi64>) -> tensor<7xi64>
    %182 = "func.call"(%arg48) <{callee = @median}> : (tensor<5x7xf64>) -> tensor<5xf64>
    %183 = "func.call"(%arg48) <{callee = @argsort_3}> : (tensor<5x7xf64>) -> tensor<5x7xi64>
    %184 = "func.call"(%arg48, %161) <{callee = @quantile_4}> : (tensor<5x7xf64>, tensor<f64>) -> tensor<5xf64>
    "func.return"(%170, %171, %172, %174, %175, %176#0, %176#1, %181, %182, %183, %184) : (tensor<5x7xf64>, tensor<5x7xf64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xi64>, tensor<5x7xf64>, tensor<7xi64>, tensor<5xf64>, tensor<5x7xi64>, tensor<5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>) -> tensor<5x7xf64>, sym_name = "sort", sym_visibility = "private"}> ({
  ^bb0(%arg45: tensor<5x7xf64>):
    %149 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %150 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %151 = "stablehlo.sort"(%arg45) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg46: tensor<f64>, %arg47: tensor<f64>):
      %152 = "stablehlo.compare"(%arg46, %150) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %153 = "stablehlo.select"(%152, %150, %arg46) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %154 = "stablehlo.compare"(%arg46, %arg46) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %155 = "stablehlo.select"(%154, %149, %153) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %156 = "stablehlo.compare"(%arg47, %150) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %157 = "stablehlo.select"(%156, %150, %arg47) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %158 = "stablehlo.compare"(%arg47, %arg47) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %159 = "stablehlo.select"(%158, %149, %157) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %160 = "stablehlo.compare"(%155, %159) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%160) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>) -> tensor<5x7xf64>
    "func.return"(%151) : (tensor<5x7xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>) -> tensor<5x7xf64>, sym_name = "sort_0", sym_visibility = "private"}> ({
  ^bb0(%arg42: tensor<5x7xf64>):
    %137 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %138 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %139 = "stablehlo.sort"(%arg42) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg43: tensor<f64>, %arg44: tensor<f64>):
      %140 = "stablehlo.compare"(%arg43, %138) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %141 = "stablehlo.select"(%140, %138, %arg43) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %142 = "stablehlo.compare"(%arg43, %arg43) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %143 = "stablehlo.select"(%142, %137, %141) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %144 = "stablehlo.compare"(%arg44, %138) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %145 = "stablehlo.select"(%144, %138, %arg44) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %146 = "stablehlo.compare"(%arg44, %arg44) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %147 = "stablehlo.select"(%146, %137, %145) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %148 = "stablehlo.compare"(%143, %147) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%148) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>) -> tensor<5x7xf64>
    "func.return"(%139) : (tensor<5x7xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>) -> tensor<5x7xi64>, sym_name = "argsort", sym_visibility = "private"}> ({
  ^bb0(%arg37: tensor<5x7xf64>):
    %124 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %125 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %126 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x7xi64>
    %127:2 = "stablehlo.sort"(%arg37, %126) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg38: tensor<f64>, %arg39: tensor<f64>, %arg40: tensor<i64>, %arg41: tensor<i64>):
      %128 = "stablehlo.compare"(%arg38, %125) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %129 = "stablehlo.select"(%128, %125, %arg38) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %130 = "stablehlo.compare"(%arg38, %arg38) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %131 = "stablehlo.select"(%130, %124, %129) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %132 = "stablehlo.compare"(%arg39, %125) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %133 = "stablehlo.select"(%132, %125, %arg39) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %134 = "stablehlo.compare"(%arg39, %arg39) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %135 = "stablehlo.select"(%134, %124, %133) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %136 = "stablehlo.compare"(%131, %135) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%136) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>, tensor<5x7xi64>) -> (tensor<5x7xf64>, tensor<5x7xi64>)
    "func.return"(%127#1) : (tensor<5x7xi64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xi64>) -> tensor<5x7xi64>, sym_name = "argsort_1", sym_visibility = "private"}> ({
  ^bb0(%arg32: tensor<5x7xi64>):
    %121 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x7xi64>
    %122:2 = "stablehlo.sort"(%arg32, %121) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg33: tensor<i64>, %arg34: tensor<i64>, %arg35: tensor<i64>, %arg36: tensor<i64>):
      %123 = "stablehlo.compare"(%arg33, %arg34) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%123) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi64>, tensor<5x7xi64>) -> (tensor<5x7xi64>, tensor<5x7xi64>)
    "func.return"(%122#1) : (tensor<5x7xi64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xi64>) -> tensor<5x7xi64>, sym_name = "sort_2", sym_visibility = "private"}> ({
  ^bb0(%arg29: tensor<5x7xi64>):
    %118 = "stablehlo.sort"(%arg29) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg30: tensor<i64>, %arg31: tensor<i64>):
      %120 = "stablehlo.compare"(%arg30, %arg31) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%120) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi64>) -> tensor<5x7xi64>
    %119 = "stablehlo.reverse"(%118) <{dimensions = array<i64: 1>}> : (tensor<5x7xi64>) -> tensor<5x7xi64>
    "func.return"(%119) : (tensor<5x7xi64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<7xf64>, tensor<7xi64>) -> tensor<7xi64>, sym_name = "lexsort", sym_visibility = "private"}> ({
  ^bb0(%arg21: tensor<7xf64>, %arg22: tensor<7xi64>):
    %101 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %102 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %103 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<7xi64>
    %104:3 = "stablehlo.sort"(%arg22, %arg21, %103) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg23: tensor<i64>, %arg24: tensor<i64>, %arg25: tensor<f64>, %arg26: tensor<f64>, %arg27: tensor<i64>, %arg28: tensor<i64>):
      %105 = "stablehlo.compare"(%arg25, %102) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %106 = "stablehlo.select"(%105, %102, %arg25) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %107 = "stablehlo.compare"(%arg25, %arg25) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %108 = "stablehlo.select"(%107, %101, %106) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %109 = "stablehlo.compare"(%arg26, %102) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %110 = "stablehlo.select"(%109, %102, %arg26) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %111 = "stablehlo.compare"(%arg26, %arg26) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %112 = "stablehlo.select"(%111, %101, %110) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %113 = "stablehlo.compare"(%108, %112) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %114 = "stablehlo.compare"(%arg23, %arg24) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %115 = "stablehlo.compare"(%arg23, %arg24) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %116 = "stablehlo.and"(%115, %113) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %117 = "stablehlo.or"(%114, %116) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%117) : (tensor<i1>) -> ()
    }) : (tensor<7xi64>, tensor<7xf64>, tensor<7xi64>) -> (tensor<7xi64>, tensor<7xf64>, tensor<7xi64>)
    "func.return"(%104#2) : (tensor<7xi64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>) -> tensor<5xf64>, sym_name = "median", sym_visibility = "private"}> ({
  ^bb0(%arg20: tensor<5x7xf64>):
    %99 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %100 = "func.call"(%arg20, %99) <{callee = @quantile}> : (tensor<5x7xf64>, tensor<f64>) -> tensor<5xf64>
    "func.return"(%100) : (tensor<5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>, tensor<f64>) -> tensor<5xf64>, sym_name = "quantile", sym_visibility = "private"}> ({
  ^bb0(%arg14: tensor<5x7xf64>, %arg15: tensor<f64>):
    %61 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %62 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %63 = "stablehlo.constant"() <{value = dense<7.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %64 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %65 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %66 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %67 = "stablehlo.compare"(%arg14, %arg14) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<5x7xf64>, tensor<5x7xf64>) -> tensor<5x7xi1>
    %68 = "stablehlo.reduce"(%67, %66) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg18: tensor<i1>, %arg19: tensor<i1>):
      %98 = "stablehlo.or"(%arg18, %arg19) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%98) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi1>, tensor<i1>) -> tensor<5xi1>
    %69 = "stablehlo.broadcast_in_dim"(%68) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi1>) -> tensor<5x1xi1>
    %70 = "func.call"(%69, %65, %arg14) <{callee = @_where}> : (tensor<5x1xi1>, tensor<f64>, tensor<5x7xf64>) -> tensor<5x7xf64>
    %71 = "stablehlo.sort"(%70) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg16: tensor<f64>, %arg17: tensor<f64>):
      %89 = "stablehlo.compare"(%arg16, %64) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %90 = "stablehlo.select"(%89, %64, %arg16) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %91 = "stablehlo.compare"(%arg16, %arg16) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %92 = "stablehlo.select"(%91, %65, %90) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %93 = "stablehlo.compare"(%arg17, %64) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %94 = "stablehlo.select"(%93, %64, %arg17) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %95 = "stablehlo.compare"(%arg17, %arg17) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %96 = "stablehlo.select"(%95, %65, %94) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %97 = "stablehlo.compare"(%92, %96) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%97) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>) -> tensor<5x7xf64>
    %72 = "stablehlo.subtract"(%63, %62) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %73 = "stablehlo.multiply"(%arg15, %72) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %74 = "stablehlo.floor"(%73) : (tensor<f64>) -> tensor<f64>
    %75 = "stablehlo.ceil"(%73) : (tensor<f64>) -> tensor<f64>
    %76 = "stablehlo.subtract"(%63, %62) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %77 = "stablehlo.clamp"(%64, %74, %76) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
    %78 = "stablehlo.subtract"(%63, %62) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %79 = "stablehlo.clamp"(%64, %75, %78) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
    %80 = "stablehlo.convert"(%77) : (tensor<f64>) -> tensor<i64>
    %81 = "stablehlo.convert"(%79) : (tensor<f64>) -> tensor<i64>
    %82 = "stablehlo.broadcast_in_dim"(%80) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
    %83 = "stablehlo.gather"(%71, %82) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 5, 1>}> : (tensor<5x7xf64>, tensor<1xi64>) -> tensor<5xf64>
    %84 = "stablehlo.broadcast_in_dim"(%81) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
    %85 = "stablehlo.gather"(%71, %84) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 5, 1>}> : (tensor<5x7xf64>, tensor<1xi64>) -> tensor<5xf64>
    %86 = "stablehlo.add"(%83, %85) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    %87 = "stablehlo.broadcast_in_dim"(%61) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %88 = "stablehlo.multiply"(%86, %87) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    "func.return"(%88) : (tensor<5xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x1xi1>, tensor<f64>, tensor<5x7xf64>) -> tensor<5x7xf64>, sym_name = "_where", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<5x1xi1>, %arg12: tensor<f64>, %arg13: tensor<5x7xf64>):
    %57 = "stablehlo.convert"(%arg12) : (tensor<f64>) -> tensor<f64>
    %58 = "stablehlo.broadcast_in_dim"(%arg11) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<5x1xi1>) -> tensor<5x7xi1>
    %59 = "stablehlo.broadcast_in_dim"(%57) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5x7xf64>
    %60 = "stablehlo.select"(%58, %59, %arg13) : (tensor<5x7xi1>, tensor<5x7xf64>, tensor<5x7xf64>) -> tensor<5x7xf64>
    "func.return"(%60) : (tensor<5x7xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>) -> tensor<5x7xi64>, sym_name = "argsort_3", sym_visibility = "private"}> ({
  ^bb0(%arg6: tensor<5x7xf64>):
    %41 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %42 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %43 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<5x7xi64>
    %44 = "stablehlo.reverse"(%arg6) <{dimensions = array<i64: 1>}> : (tensor<5x7xf64>) -> tensor<5x7xf64>
    %45 = "stablehlo.reverse"(%43) <{dimensions = array<i64: 1>}> : (tensor<5x7xi64>) -> tensor<5x7xi64>
    %46:2 = "stablehlo.sort"(%44, %45) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg7: tensor<f64>, %arg8: tensor<f64>, %arg9: tensor<i64>, %arg10: tensor<i64>):
      %48 = "stablehlo.compare"(%arg7, %42) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %49 = "stablehlo.select"(%48, %42, %arg7) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %50 = "stablehlo.compare"(%arg7, %arg7) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %51 = "stablehlo.select"(%50, %41, %49) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %52 = "stablehlo.compare"(%arg8, %42) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %53 = "stablehlo.select"(%52, %42, %arg8) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %54 = "stablehlo.compare"(%arg8, %arg8) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %55 = "stablehlo.select"(%54, %41, %53) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %56 = "stablehlo.compare"(%51, %55) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%56) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>, tensor<5x7xi64>) -> (tensor<5x7xf64>, tensor<5x7xi64>)
    %47 = "stablehlo.reverse"(%46#1) <{dimensions = array<i64: 1>}> : (tensor<5x7xi64>) -> tensor<5x7xi64>
    "func.return"(%47) : (tensor<5x7xi64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<5x7xf64>, tensor<f64>) -> tensor<5xf64>, sym_name = "quantile_4", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<5x7xf64>, %arg1: tensor<f64>):
    %0 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %1 = "stablehlo.constant"() <{value = dense<7.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %2 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %3 = "stablehlo.constant"() <{value = dense<0x7FF8000000000000> : tensor<f64>}> : () -> tensor<f64>
    %4 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %5 = "stablehlo.compare"(%arg0, %arg0) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<5x7xf64>, tensor<5x7xf64>) -> tensor<5x7xi1>
    %6 = "stablehlo.reduce"(%5, %4) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg4: tensor<i1>, %arg5: tensor<i1>):
      %40 = "stablehlo.or"(%arg4, %arg5) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%40) : (tensor<i1>) -> ()
    }) : (tensor<5x7xi1>, tensor<i1>) -> tensor<5xi1>
    %7 = "stablehlo.broadcast_in_dim"(%6) <{broadcast_dimensions = array<i64: 0>}> : (tensor<5xi1>) -> tensor<5x1xi1>
    %8 = "func.call"(%7, %3, %arg0) <{callee = @_where}> : (tensor<5x1xi1>, tensor<f64>, tensor<5x7xf64>) -> tensor<5x7xf64>
    %9 = "stablehlo.sort"(%8) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f64>, %arg3: tensor<f64>):
      %31 = "stablehlo.compare"(%arg2, %2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %32 = "stablehlo.select"(%31, %2, %arg2) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %33 = "stablehlo.compare"(%arg2, %arg2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %34 = "stablehlo.select"(%33, %3, %32) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %35 = "stablehlo.compare"(%arg3, %2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %36 = "stablehlo.select"(%35, %2, %arg3) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %37 = "stablehlo.compare"(%arg3, %arg3) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction NE>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %38 = "stablehlo.select"(%37, %3, %36) : (tensor<i1>, tensor<f64>, tensor<f64>) -> tensor<f64>
      %39 = "stablehlo.compare"(%34, %38) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f64>, tensor<f64>) -> tensor<i1>
      "stablehlo.return"(%39) : (tensor<i1>) -> ()
    }) : (tensor<5x7xf64>) -> tensor<5x7xf64>
    %10 = "stablehlo.subtract"(%1, %0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %11 = "stablehlo.multiply"(%arg1, %10) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %12 = "stablehlo.floor"(%11) : (tensor<f64>) -> tensor<f64>
    %13 = "stablehlo.ceil"(%11) : (tensor<f64>) -> tensor<f64>
    %14 = "stablehlo.subtract"(%11, %12) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %15 = "stablehlo.subtract"(%0, %14) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %16 = "stablehlo.subtract"(%1, %0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %17 = "stablehlo.clamp"(%2, %12, %16) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
    %18 = "stablehlo.subtract"(%1, %0) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %19 = "stablehlo.clamp"(%2, %13, %18) : (tensor<f64>, tensor<f64>, tensor<f64>) -> tensor<f64>
    %20 = "stablehlo.convert"(%17) : (tensor<f64>) -> tensor<i64>
    %21 = "stablehlo.convert"(%19) : (tensor<f64>) -> tensor<i64>
    %22 = "stablehlo.broadcast_in_dim"(%20) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
    %23 = "stablehlo.gather"(%9, %22) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 5, 1>}> : (tensor<5x7xf64>, tensor<1xi64>) -> tensor<5xf64>
    %24 = "stablehlo.broadcast_in_dim"(%21) <{broadcast_dimensions = array<i64>}> : (tensor<i64>) -> tensor<1xi64>
    %25 = "stablehlo.gather"(%9, %24) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1]>, slice_sizes = array<i64: 5, 1>}> : (tensor<5x7xf64>, tensor<1xi64>) -> tensor<5xf64>
    %26 = "stablehlo.broadcast_in_dim"(%15) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %27 = "stablehlo.multiply"(%23, %26) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    %28 = "stablehlo.broadcast_in_dim"(%14) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<5xf64>
    %29 = "stablehlo.multiply"(%25, %28) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    %30 = "stablehlo.add"(%27, %29) : (tensor<5xf64>, tensor<5xf64>) -> tensor<5xf64>
    "func.return"(%30) : (tensor<5xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
